package incident

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spinguard/spinguard/profiler/stack"
)

// Bounds of what one incident keeps. Request texts, symbols and values come
// out of a worker's memory and may be of any size.
const (
	maxName    = 256  // bytes of a name, a place, a value
	maxText    = 4096 // bytes of a request, a reason, a log line
	maxChange  = 64 << 10
	maxFrames  = 256
	maxValues  = 64
	maxSignals = 100 // of the host
	maxLines   = 500 // events, actions, log lines
)

// bound cuts every text and list to its bound, makes texts printable and turns
// nil lists into empty ones. It copies what it changes.
func (inc *Incident) bound() {
	names(&inc.Origin, &inc.Proxy, &inc.Kind, &inc.Mode, &inc.Verdict, &inc.Follows)
	texts(&inc.Reason, &inc.Story)
	inc.Outcome = Outcome(cut(string(inc.Outcome), maxName))
	inc.Events = bounded(inc.Events, maxLines, func(e *Event) {
		names(&e.Kind)
		texts(&e.Text)
	})
	inc.Actions = bounded(inc.Actions, maxLines, func(a *Action) {
		names(&a.Kind, &a.Result)
		texts(&a.Target, &a.Text)
	})
	inc.Rails = bounded(inc.Rails, maxLines, func(s *string) { texts(s) })
	inc.Log = bounded(inc.Log, maxLines, func(s *string) { texts(s) })
	inc.Signals = inc.boundSignals()
	inc.Evidence.bound()
	inc.Numbers.CPUShare = finite(inc.Numbers.CPUShare)
	inc.boundDetails()
	inc.Samples.Lost = boundedMap(inc.Samples.Lost)
}

// boundSignals keeps nil nil: most incidents have none.
func (inc *Incident) boundSignals() []Signal {
	if len(inc.Signals) == 0 {
		return nil
	}
	return bounded(inc.Signals, maxSignals, func(s *Signal) {
		names(&s.Kind)
		texts(&s.Text)
	})
}

func (inc *Incident) boundDetails() {
	if inc.Change != nil {
		c := *inc.Change
		names(&c.Upstream, &c.From, &c.To)
		c.Text, c.Config = cutLines(c.Text, maxChange), cutLines(c.Config, maxChange)
		inc.Change = &c
	}
	if inc.Blocked != nil {
		b := *inc.Blocked
		texts(&b.Syscall, &b.Target)
		names(&b.State)
		inc.Blocked = &b
	}
	if inc.Lock != nil {
		l := *inc.Lock
		names(&l.Zone, &l.Verdict)
		l.Victims = bounded(l.Victims, maxLines, func(*Worker) {})
		inc.Lock = &l
	}
}

func (e *Evidence) bound() {
	texts(&e.Request, &e.Host)
	names(&e.Phase, &e.Upstream, &e.Version, &e.Digest, &e.Peer)
	e.Frames = bounded(e.Frames, maxFrames, func(s *string) { *s = cut(*s, 2*maxName) })
	e.Stack = bounded(e.Stack, maxFrames, func(f *Frame) {
		names(&f.Kind, &f.Function, &f.File, &f.Address)
		texts(&f.Module)
		if f.Values != nil {
			f.Values = boundedValues(f.Values)
		}
	})
	e.Values = boundedValues(e.Values)
	if e.Lines != nil {
		e.Lines = bounded(e.Lines, maxValues, func(l *Line) {
			names(&l.Place)
			l.Share = finite(l.Share)
		})
	}
	if e.Hot < 0 || e.Hot >= len(e.Stack) {
		e.Hot = 0
	}
}

func boundedValues(list []stack.Value) []stack.Value {
	return bounded(list, maxValues, func(v *stack.Value) { names(&v.Name, &v.Type, &v.Text) })
}

// bounded returns a copy of at most n entries, each passed through fix.
func bounded[T any](list []T, n int, fix func(*T)) []T {
	out := append([]T{}, list[:min(n, len(list))]...)
	for i := range out {
		fix(&out[i])
	}
	return out
}

func boundedMap(m map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for k, v := range m {
		if len(out) == maxValues {
			k = "other reasons"
		}
		out[cut(k, maxName)] += v
	}
	return out
}

// finite returns 0 for what JSON cannot hold: evidence must not be lost for one
// number that is none.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

func names(list ...*string) { cutAll(list, maxName) }
func texts(list ...*string) { cutAll(list, maxText) }

func cutAll(list []*string, n int) {
	for _, s := range list {
		*s = cut(*s, n)
	}
}

// cut returns s as one printable line of at most n bytes, with an ellipsis
// where it was longer.
func cut(s string, n int) string { return printable(head(s, n), "") }

// cutLines is cut for texts of many lines.
func cutLines(s string, n int) string { return printable(head(s, n), "\n\t") }

// head cuts s to n bytes, between two characters.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := n
	for end > n-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// printable replaces what is not UTF-8 and what would steer a terminal or turn
// the direction of a text, but for the characters in keep.
func printable(s, keep string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || strings.ContainsRune(keep, r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
