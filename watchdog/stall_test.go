package watchdog

import (
	"testing"
	"time"
)

// The line of a standstill that ended tells of what stood still: not of what
// ran before or came next, nor of what one sample met on its way.
func TestAStallIsToldByItsOwnSamples(t *testing.T) {
	w := &worker{}
	for i, line := range []int{1, 1, 1, 1, 11, 13, 13, 12, 99} {
		s := at(line)
		s.when = time.Duration(i+1) * 20 * time.Millisecond
		w.recent = append(w.recent, s)
	}
	w.last.Now = 180 * time.Millisecond
	if got := mostTypical(w.during(80 * time.Millisecond)).result.Stack.Frames[1].Line; got != 13 {
		t.Errorf("the stall is at line %d, want 13", got)
	}
	w.recent = w.recent[8:]
	if got := len(w.during(80 * time.Millisecond)); got != 1 {
		t.Errorf("%d samples where only the one that ended it is there, want that one", got)
	}
}
