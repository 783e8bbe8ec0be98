package drill

import (
	"testing"
	"time"
)

func TestAWorkerGoesNoEarlierThanItWasRead(t *testing.T) {
	w := &workerWatch{now: []int{1, 2}}
	var killed time.Time
	w.look(func() []int {
		time.Sleep(time.Millisecond)
		killed = time.Now()
		return []int{1}
	})
	w.look(func() []int { return []int{1, 3} })
	if _, ok := replaced(w.since(time.Time{}), killed, 1, 2); !ok {
		t.Errorf("the worker that was killed while it was read is not replaced: %+v", w.changes)
	}
}
