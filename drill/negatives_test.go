package drill

import (
	"slices"
	"testing"
)

func TestNegativesAreCasesInWhichNothingMayBeDone(t *testing.T) {
	list := expand([]string{"negatives"})
	for _, want := range []string{"idle", "case:saturated", "timer-burst", "reload-storm"} {
		if !slices.Contains(list, want) && !slices.Contains(list, casePrefix+want) {
			t.Errorf("%q lacks %s", list, want)
		}
	}
	for _, name := range list {
		sc, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if v := sc.Case.Expect.Verdict; v != "healthy" && v != "saturated" {
			t.Errorf("%s expects %s", name, v)
		}
	}
}
