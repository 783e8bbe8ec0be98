package drill

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spinguard/spinguard/incident"
)

// seen is an incident as the drill found it on disk.
type seen struct {
	incident.Incident
	dir string
}

// incidentMax bounds what is read of one incident.json.
const incidentMax = 32 << 20

// incidentWatch reads the incidents of an agent from its state directory, each
// again only when its file has changed. One goroutine uses it.
type incidentWatch struct {
	root  string
	stamp map[string]time.Time
	all   map[string]*seen
	bad   map[string]string // id -> what is wrong with its incident.json
	old   map[string]bool   // ids from before: of another scenario with the same agent
}

func newIncidentWatch(state string) *incidentWatch {
	w := &incidentWatch{
		root: filepath.Join(state, "incidents"), stamp: map[string]time.Time{},
		all: map[string]*seen{}, bad: map[string]string{}, old: map[string]bool{},
	}
	dirs, _ := os.ReadDir(w.root) // not there before the first incident
	for _, d := range dirs {
		w.old[d.Name()] = true
	}
	return w
}

// poll reads what is new and returns the incidents in order of their begin.
func (w *incidentWatch) poll() []*seen {
	dirs, _ := os.ReadDir(w.root) // not there before the first incident
	for _, d := range dirs {
		// A folder that is still being written has a leading dot, and no id.
		if d.IsDir() && !strings.HasPrefix(d.Name(), ".") && !w.old[d.Name()] {
			w.read(d.Name())
		}
	}
	out := make([]*seen, 0, len(w.all))
	for _, s := range w.all {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *seen) int {
		if c := a.Began.Compare(b.Began); c != 0 {
			return c
		}
		return strings.Compare(a.dir, b.dir)
	})
	return out
}

func (w *incidentWatch) read(id string) {
	file := filepath.Join(w.root, id, "incident.json")
	st, err := os.Stat(file)
	if err != nil || st.ModTime().Equal(w.stamp[id]) {
		return
	}
	data, err := readBounded(file, incidentMax)
	if err != nil {
		return
	}
	s := &seen{dir: filepath.Join(w.root, id)}
	if err := json.Unmarshal(data, &s.Incident); err != nil {
		w.bad[id] = err.Error()
		return
	}
	delete(w.bad, id)
	w.stamp[id], w.all[id] = st.ModTime(), s
}

// severity orders verdicts from nothing to the worst.
var severity = map[string]int{
	"": 0, "healthy": 0, "suspect": 1, "saturated": 2, "spinning": 3, "blocked": 4, "runaway": 5, "lock_victim": 6,
}

// mainIncident chooses the incident that tells the story: the first after the
// trigger with the wanted verdict and evidence, else the first confirmed one, else the
// first.
func mainIncident(list []*seen, trigger time.Time, want string) *seen {
	var first, confirmed *seen
	rec := record{incidents: list, trigger: trigger}
	for _, s := range rec.after() {
		// An agent that was killed may leave an incident without evidence.
		if s.Verdict == want && s.Timeline.Captured != nil {
			return s
		}
		if confirmed == nil && s.Timeline.Confirmed != nil {
			confirmed = s
		}
		if first == nil {
			first = s
		}
	}
	if confirmed != nil {
		return confirmed
	}
	return first
}

// after converts a time of an incident's timeline into milliseconds after the
// trigger.
func (s *seen) after(trigger time.Time, ms *int64) *int64 {
	if ms == nil {
		return nil
	}
	t := s.Began.Add(time.Duration(*ms) * time.Millisecond).Sub(trigger).Milliseconds()
	return &t
}
