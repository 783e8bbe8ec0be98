package incident

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// row is one bar of the timeline: a step, and the time since the step before.
type row struct {
	Name   string
	MS     int64
	X, W   float64 // of the bar, in thousandths of the whole
	Before string  // time since the step before
}

// waterfall turns the timeline into bars.
func waterfall(inc *Incident) []row {
	steps := inc.Timeline.Steps()
	if inc.Timeline.Recovered == nil && inc.Ended != nil {
		steps = append(steps, Step{"ended", inc.Ended.Sub(inc.Began).Milliseconds()})
	}
	var whole int64 = 1
	for _, s := range steps {
		whole = max(whole, s.MS)
	}
	var rows []row
	var last int64
	for _, s := range steps {
		from := min(max(last, 0), max(s.MS, 0))
		r := row{Name: s.Name, MS: s.MS, Before: "+" + ms(s.MS-last)}
		r.X = 1000 * float64(from) / float64(whole)
		r.W = max(1000*float64(max(s.MS, 0))/float64(whole)-r.X, 4)
		r.X = min(r.X, 996)
		last = s.MS
		rows = append(rows, r)
	}
	return rows
}

// tile is one number of the row below the story.
type tile struct{ Name, Value string }

func tiles(inc *Incident) []tile {
	list := []tile{{"workers stuck", fmt.Sprint(inc.WorkersStuck)}, {"evicted", fmt.Sprint(inc.WorkersEvicted)}}
	if r := inc.recovery(); r > 0 {
		list = append([]tile{{"until it ended", age(r)}}, list...)
	}
	n := inc.Numbers
	for _, t := range []struct {
		name  string
		value int64
	}{{"longest stall", n.StallMS}, {"standstill", n.Standstill}, {"CPU time", n.CPUMS}, {"waited for a CPU", n.RunDelayMS}, {"throttled", n.Throttled}} {
		if t.value > 0 {
			list = append(list, tile{t.name, ms(t.value)})
		}
	}
	if n.CPUShare > 0 {
		list = append(list, tile{"of one core", fmt.Sprintf("%.0f %%", 100*n.CPUShare)})
	}
	return list
}

// line is one line of a difference with its kind: add, del or same.
type line struct{ Kind, Text string }

func diffLines(text string) []line {
	var out []line
	for s := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		kind := "same"
		switch {
		case strings.HasPrefix(s, "+"):
			kind = "add"
		case strings.HasPrefix(s, "-"):
			kind = "del"
		}
		out = append(out, line{kind, s})
	}
	return out
}

// LostReasons lists the reasons for lost samples by name.
func (p page) LostReasons() []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(p.Samples.Lost)) {
		if n := p.Samples.Lost[k]; n > 0 {
			out = append(out, fmt.Sprintf("%s: %d", k, n))
		}
	}
	return out
}

// After returns when an event happened, relative to the beginning.
func (p page) After(t time.Time) string {
	d := t.Sub(p.Began)
	if d < 0 {
		return "-" + age(-d)
	}
	return "+" + age(d)
}

func (p page) Title() string {
	return capital(name(p.Worker)) + " of " + word(p.Proxy, "an unnamed proxy")
}

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }

func kilobytes(n int64) string {
	if n < 10_000 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d kB", n/1000)
}

// allFiles lists what the folder will hold besides the report.
func (s *Store) allFiles(id string, files map[string][]byte) []FileInfo {
	sizes := map[string]int64{JSONFile: 0}
	old, err := s.Files(id)
	if err == nil { // none before Create
		for _, f := range old {
			sizes[f.Name] = f.Bytes
		}
	}
	for name, data := range files {
		sizes[name] = int64(len(data))
	}
	delete(sizes, ReportFile)
	delete(sizes, JSONFile) // its size is not known before it is written
	out := []FileInfo{{Name: JSONFile}}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		out = append(out, FileInfo{name, sizes[name]})
	}
	return out
}
