package watchdog

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"go.uber.org/zap"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/stack"
)

// stackOf makes a stack of native functions, leaf first.
func stackOf(functions ...string) stack.Stack {
	var s stack.Stack
	for _, f := range functions {
		s.Frames = append(s.Frames, stack.Frame{Kind: stack.Native, Function: f})
	}
	return s
}

// compared makes the files that compare a worker that loops in gcd with what
// the recorder holds of it and of its sibling.
func compared(t *testing.T, r *profiler.Recorder) map[string][]byte {
	t.Helper()
	ev := &evidence{a: &Agent{log: zap.NewNop(), recorder: r}, since: 20 * time.Second, files: map[string][]byte{}}
	ev.rates.steady = 49
	own, sibling := profiler.Worker{PID: 1, TID: 1}, profiler.Worker{PID: 2, TID: 2}
	ev.before = spans{0, ev.since, []span{{profiler.Only(own), ev.since}}}
	ev.siblings = spans{0, ev.since, []span{{profiler.Only(sibling), ev.since}}}
	b := profiler.NewBuilder(time.Unix(1000, 0), time.Second/499)
	b.AddStack(stackOf("gcd", "pick", "serve", "main"), 100, 200*time.Millisecond, profiler.Labels{})
	now, err := b.Profile()
	if err != nil {
		t.Fatal(err)
	}
	ev.addComparison(now)
	return ev.files
}

// The difference shows what is new against the worker's own past, else against
// its siblings, and says how many samples that is and what the recorder gave up.
func TestTheDifferenceShowsWhatIsNew(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pid   int
		title string
	}{{"own past", 1, "Stuck, against its own 30 s before"}, {"siblings", 2, "Stuck, against its siblings"}} {
		t.Run(tt.name, func(t *testing.T) {
			r := profiler.NewRecorder(profiler.RecorderOptions{Budget: 16 << 10})
			w := profiler.Worker{PID: tt.pid, TID: tt.pid}
			for i := range 60 {
				at := time.Duration(i) * 250 * time.Millisecond
				r.Add(w, at, profiler.Result{Stack: stackOf(fmt.Sprint("render", i), "serve", "main")}, time.Millisecond, profiler.Labels{})
			}
			files := compared(t, r)
			svg := string(files[incident.DiffFile])
			for _, want := range []string{tt.title, "gcd\nunknown, 200 ms, 100.00 %, base 0.00 %, change +100.00 points", "main\nunknown, 200 ms, 100.00 %, base 100.00 %", "Vanished since the base", "100 taken = 100 shown + 0 lost", "taken = 16 shown + ", "recorder degraded: oldest dropped"} {
				if !strings.Contains(svg, want) {
					t.Errorf("diff.svg does not say %q", want)
				}
			}
			name := map[int]string{1: incident.BaselineFile, 2: incident.SiblingsFile}[tt.pid]
			base, err := profile.Parse(bytes.NewReader(files[name]))
			if err != nil || !strings.Contains(strings.Join(base.Comments, "\n"), "recorder_degraded=oldest dropped") {
				t.Errorf("%s: %v does not say what the recorder gave up", name, err)
			}
		})
	}
	if files := compared(t, profiler.NewRecorder(profiler.RecorderOptions{})); len(files) > 0 {
		t.Errorf("%d files compare with nothing", len(files))
	}
}
