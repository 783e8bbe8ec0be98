package web

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/spinguard/spinguard/web/api"
)

// verdicts are the judge's words, the worst first.
var verdicts = []string{"runaway", "blocked", "spinning", "lock_victim", "suspect", "saturated", "healthy"}

var templateFuncs = template.FuncMap{
	"utc":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	"clock":   func(t time.Time) string { return t.UTC().Format("15:04:05.000") },
	"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"percent": func(f float64) string { return fmt.Sprintf("%.0f %%", 100*f) },
	"seconds": seconds,
	"stall":   stall,
	"mb":      func(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) },
	"sum": func(m map[string]int64) (n int64) {
		for _, v := range m {
			n += v
		}
		return n
	},
	"pages": func() []struct{ Tab, Path, Name string } {
		return []struct{ Tab, Path, Name string }{
			{"overview", "/", "Workers"}, {"incidents", "/incidents", "Incidents"},
			{"quarantines", "/quarantines", "Quarantines"}, {"feed", "/feed", "Events"}, {"settings", "/settings", "Settings"},
		}
	},
}

// stall writes a length of milliseconds: exact while it is short.
func stall(ms float64) string {
	if ms < 1000 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return seconds(ms / 1000)
}

// seconds writes a length of time as people say it.
func seconds(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case s < 60:
		return fmt.Sprintf("%.1f s", s)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(s)%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d days", int(d.Hours())/24)
	}
}

// workerRow is one worker with its spark lines.
type workerRow struct {
	api.WorkerStatus
	CPULine, StallLine string // points of a polyline in a box of 120 by 24
	StallMax           float64
}

func (s *Server) rows() []workerRow {
	var rows []workerRow
	for _, w := range s.o.Source.Workers() {
		points := s.history.of(w)
		cpu, stall := make([]float64, len(points)), make([]float64, len(points))
		for i, p := range points {
			cpu[i], stall[i] = p.CPU, p.StallMS
		}
		most := max(300, slices.Max(append(stall, 0)))
		rows = append(rows, workerRow{shownWorker(w), polyline(cpu, 1), polyline(stall, most), most})
	}
	return rows
}

// polyline draws values between 0 and most, the newest at the right edge.
func polyline(values []float64, most float64) string {
	var b strings.Builder
	for i, v := range values {
		x := 120 - 2*float64(len(values)-1-i)
		y := 23 - 22*min(max(v/most, 0), 1)
		fmt.Fprintf(&b, "%.0f,%.1f ", x, y)
	}
	return strings.TrimSuffix(b.String(), " ")
}

func newestFirst(list []api.Event, n int) []api.Event {
	slices.Reverse(list)
	return shownEvents(list[:min(n, len(list))])
}

func notFound(path string) error { return fmt.Errorf("%w: page %s", ErrNotFound, quoted(path)) }
