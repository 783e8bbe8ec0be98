package profiler

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/stack"
)

var (
	workerA = Worker{Proxy: "nginx", PID: 10, TID: 10}
	workerB = Worker{Proxy: "nginx", PID: 11, TID: 11}
	workerC = Worker{Proxy: "other", PID: 12, TID: 12}
)

// stackOf makes a stack that no other number shares, with the given depth.
func stackOf(n, depth int) Result {
	s := stack.Stack{Frames: []stack.Frame{{
		Kind: stack.Lua, Function: "f" + strconv.Itoa(n), File: "a.lua", Line: n,
		Values: []stack.Value{{Name: "a", Type: "number", Text: strconv.Itoa(n)}},
	}}}
	for i := range depth {
		s.Frames = append(s.Frames, stack.Frame{Kind: stack.Native, Function: fmt.Sprint("g", i), Address: uint64(0x400000 + i), Mapping: testMapping})
	}
	return Result{Stack: s, State: "interpreter"}
}

func all(Worker) bool { return true }

func (r *Recorder) totals(t *testing.T, match func(Worker) bool) (shown, lost uint64, weight time.Duration) {
	t.Helper()
	b := NewBuilder(time.Time{}, time.Second/49)
	r.Fill(b, match, 0, 1<<62)
	p := encoded(t, b)
	_, shown, lost, _ = b.Counts()
	for _, s := range p.Sample {
		weight += time.Duration(s.Value[1])
	}
	return shown, lost, weight
}

func TestRecorderSplitsByTimeAndWorker(t *testing.T) {
	r := NewRecorder(RecorderOptions{})
	for i := range 10 {
		at := time.Duration(i) * time.Second
		r.Add(workerA, at, stackOf(i, 3), time.Millisecond, Labels{Worker: "10"})
		r.Add(workerB, at, stackOf(i, 3), time.Millisecond, Labels{Worker: "11"})
		r.Add(workerC, at, stackOf(i, 3), time.Millisecond, Labels{Worker: "12"})
	}
	own := r.Stacks(Only(workerA), 2*time.Second, 5*time.Second)
	if len(own) != 3 || own[0].Stack.Frames[0].Function != "f2" || own[0].Stack.Frames[0].Values[0].Text != "2" {
		t.Fatalf("own baseline: %+v", own)
	}
	others := r.Stacks(Only(workerB), 0, time.Hour)
	if len(others) != 10 || others[0].Worker != workerB {
		t.Fatalf("%d stacks of another worker, first of %+v", len(others), others[0].Worker)
	}
}

func TestRecorderForgets(t *testing.T) {
	r := NewRecorder(RecorderOptions{Keep: 5 * time.Second})
	for i := range 1000 {
		r.Add(workerA, time.Duration(i)*100*time.Millisecond, stackOf(i, 3), time.Millisecond, Labels{})
	}
	got := r.Stacks(all, 0, time.Hour)
	if len(got) < 50 || len(got) > 60 {
		t.Errorf("%d stacks kept of 5 s at 10 Hz", len(got))
	}
	r.Forget(workerA)
	if used, _ := r.Used(); used != 0 || len(r.frames) != 0 || len(r.stacks) != 0 {
		t.Errorf("%d bytes, %d frames and %d stacks left after the last worker", used, len(r.frames), len(r.stacks))
	}
}

func TestRecorderCarriesWeight(t *testing.T) {
	r := NewRecorder(RecorderOptions{Rate: 5})
	var taken uint64
	var wanted int
	for i := range 490 { // 10 s at 49 Hz
		at := time.Duration(i) * time.Second / 49
		taken++
		if r.Wants(workerA, at, time.Second/49) {
			wanted++
			r.Add(workerA, at, stackOf(i%3, 3), time.Second/49, Labels{})
		}
	}
	shown, lost, weight := r.totals(t, all)
	if wanted < 40 || wanted > 50 {
		t.Errorf("%d stacks wanted in 10 s at 5 Hz", wanted)
	}
	if shown+lost != taken {
		t.Errorf("%d shown + %d lost, want %d taken", shown, lost, taken)
	}
	if weight < 9500*time.Millisecond || weight > 10*time.Second {
		t.Errorf("weight %v of 10 s", weight)
	}
}

// Many busy workers share the total, but of each some stacks are kept.
func TestRecorderSharesItsRate(t *testing.T) {
	for workers, want := range map[int]int{1: 20, 4: 20, 8: 10, 64: 5} {
		r := NewRecorder(RecorderOptions{Rate: 2, Total: 8})
		kept := map[int]int{}
		for i := range 490 { // 10 s at 49 Hz
			for pid := range workers {
				at, w := time.Duration(i)*time.Second/49, Worker{PID: pid, TID: pid}
				if r.Wants(w, at, time.Second/49) {
					r.Add(w, at, stackOf(i%3, 3), time.Second/49, Labels{})
					kept[pid]++
				}
			}
		}
		for pid, n := range kept {
			if n < want-2 || n > want+2 {
				t.Errorf("%d workers: %d stacks of worker %d in 10 s, want about %d", workers, n, pid, want)
			}
		}
	}
}

// Samples whose stacks were not copied are counted, and their time is shown.
func TestRecorderCountsWhatCameWithoutStack(t *testing.T) {
	r := NewRecorder(RecorderOptions{Rate: 5})
	for i := range 490 {
		at := time.Duration(i) * time.Second / 49
		switch {
		case i%5 != 0:
			r.Skip(workerA, at, time.Second/49)
		case r.Wants(workerA, at, time.Second/49):
			r.Add(workerA, at, stackOf(i%3, 3), time.Second/49, Labels{})
		}
	}
	shown, lost, weight := r.totals(t, all)
	if shown+lost != 490 || weight < 9500*time.Millisecond || weight > 10*time.Second {
		t.Errorf("%d shown + %d lost of 490 taken, %v of 10 s", shown, lost, weight)
	}
}

func TestRecorderDegradesInSteps(t *testing.T) {
	r := NewRecorder(RecorderOptions{Budget: 600_000})
	seen := map[step]int{}
	var taken uint64
	for i := range 4000 {
		r.Add(workerA, time.Duration(i)*time.Millisecond, stackOf(i, 100), time.Millisecond, Labels{})
		taken++
		if used, budget := r.Used(); used > budget {
			t.Fatalf("sample %d: %d bytes used of %d", i, used, budget)
		}
		if _, ok := seen[r.step]; !ok {
			seen[r.step] = i
		}
	}
	for s := everything; s < dropOldest; s++ {
		if seen[s] >= seen[s+1] {
			t.Errorf("step %v at sample %d, the next one at %d", s, seen[s], seen[s+1])
		}
	}
	shown, lost, _ := r.totals(t, all)
	if shown+lost != taken {
		t.Errorf("%d shown + %d lost, want %d taken", shown, lost, taken)
	}
	for _, rec := range r.Stacks(all, 0, time.Hour) {
		if len(rec.Stack.Frames) > cutFrames+1 {
			t.Fatalf("%d frames after the cut", len(rec.Stack.Frames))
		}
		if root := rec.Stack.Frames[len(rec.Stack.Frames)-1].Function; root != "g99" {
			t.Fatalf("root is %q after the cut", root)
		}
		if rec.Stack.Frames[0].Values != nil {
			t.Fatal("values are left")
		}
	}
	b := NewBuilder(time.Time{}, time.Second)
	r.Fill(b, all, 0, time.Hour)
	if got := commentOf(t, encoded(t, b), "recorder_degraded"); got != "oldest dropped" {
		t.Errorf("recorder_degraded=%s", got)
	}
	for i := range 2000 { // calm again: a step back each time the memory has turned over
		r.Add(workerA, 4*time.Second+time.Duration(i)*time.Second, stackOf(1, 3), time.Millisecond, Labels{})
	}
	if r.step != everything {
		t.Errorf("still at step %v after a calm half hour", r.step)
	}
}

// The estimate of used memory must come back to where it was.
func TestRecorderAccounts(t *testing.T) {
	r := NewRecorder(RecorderOptions{Budget: 200_000, Keep: time.Second})
	for i := range 20000 {
		w := []Worker{workerA, workerB, workerC}[i%3]
		at := time.Duration(i) * time.Millisecond
		if r.Wants(w, at, time.Millisecond) || i%7 == 0 {
			r.Add(w, at, stackOf(i%100, i%60), time.Millisecond, Labels{})
		}
		if i%1000 == 0 {
			r.Lost(w, at, "ring", 3)
		}
	}
	for _, w := range []Worker{workerA, workerB, workerC} {
		r.Forget(w)
	}
	if used, _ := r.Used(); used != 0 || len(r.frames)+len(r.stacks)+len(r.workers) != 0 {
		t.Errorf("%d bytes, %d frames, %d stacks left", used, len(r.frames), len(r.stacks))
	}
}

func BenchmarkRecorderAdd(b *testing.B) {
	r := NewRecorder(RecorderOptions{})
	results := make([]Result, 100)
	for i := range results {
		results[i] = stackOf(i, 30)
	}
	for i := 0; b.Loop(); i++ {
		r.Add(workerA, time.Duration(i)*time.Millisecond, results[i%100], time.Millisecond, Labels{})
	}
}
