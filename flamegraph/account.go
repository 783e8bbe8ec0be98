package flamegraph

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Account is what a profile's comments say about its own completeness: one
// key=value a line, such as samples_taken=1200 or lost_ring=3.
type Account struct {
	Taken, Shown, Lost int64  // -1 where the profile does not say
	Truncated          int64  // of those shown; -1 where the profile does not say
	Losses             []Note // why samples were lost: "ring" "3"
	Cuts               []Note // why stacks are truncated: "no_rule" "2"
	Notes              []Note // every other key=value, in order
}

// Note is one key=value of a comment; Key is empty for free text.
type Note struct{ Key, Value string }

// readAccount sorts out a profile's comments. "samples_" before a key may be
// left out; lost_X and truncated_X count samples by the reason X.
func readAccount(comments []string) Account {
	a := Account{Taken: -1, Shown: -1, Lost: -1, Truncated: -1}
	for _, c := range comments {
		for line := range strings.Lines(c) {
			if line = strings.TrimSpace(clean(line)); line != "" {
				a.line(line)
			}
		}
	}
	byKey := func(x, y Note) int { return cmp.Compare(x.Key, y.Key) }
	slices.SortStableFunc(a.Losses, byKey)
	slices.SortStableFunc(a.Cuts, byKey)
	return a
}

func (a *Account) line(line string) {
	key, value, ok := strings.Cut(line, "=")
	if !ok || strings.ContainsAny(key, " \t") {
		a.Notes = append(a.Notes, Note{Value: line})
		return
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || !a.number(strings.TrimPrefix(key, "samples_"), value, n) {
		a.Notes = append(a.Notes, Note{Key: key, Value: value})
	}
}

// number takes a count that the account knows, and tells whether it did.
func (a *Account) number(key, value string, n int64) bool {
	switch key {
	case "taken":
		a.Taken = n
	case "shown":
		a.Shown = n
	case "lost":
		a.Lost = n
	case "truncated":
		a.Truncated = n
	default:
		if reason, ok := strings.CutPrefix(key, "lost_"); ok {
			a.Losses = append(a.Losses, Note{Key: reason, Value: value})
		} else if reason, ok := strings.CutPrefix(key, "truncated_"); ok {
			a.Cuts = append(a.Cuts, Note{Key: reason, Value: value})
		} else {
			return false
		}
	}
	return true
}

// comments is the inverse of readAccount.
func (a Account) comments() []string {
	var out []string
	for _, c := range []struct {
		key string
		n   int64
	}{{"taken", a.Taken}, {"shown", a.Shown}, {"lost", a.Lost}, {"truncated", a.Truncated}} {
		if c.n >= 0 {
			out = append(out, fmt.Sprintf("samples_%s=%d", c.key, c.n))
		}
	}
	for _, r := range a.Losses {
		out = append(out, "lost_"+r.String())
	}
	for _, r := range a.Cuts {
		out = append(out, "truncated_"+r.String())
	}
	for _, n := range a.Notes {
		out = append(out, n.String())
	}
	return out
}

// String returns key=value, or the free text.
func (n Note) String() string {
	if n.Key == "" {
		return n.Value
	}
	return n.Key + "=" + n.Value
}

// Sentence says in words what was taken, shown and lost, and flags an
// account that does not add up.
func (a Account) Sentence() string {
	if a.Taken < 0 || a.Shown < 0 || a.Lost < 0 {
		return "The profile does not say how many samples were lost."
	}
	s := fmt.Sprintf("Samples: %s taken = %s shown + %s lost%s.",
		thousands(a.Taken), thousands(a.Shown), thousands(a.Lost), reasons(a.Losses))
	if a.Lost > a.Taken || a.Taken != a.Shown+a.Lost {
		s += " These numbers do not add up."
	}
	if a.Truncated >= 0 {
		s += fmt.Sprintf(" Of those shown, %s %s truncated%s.", thousands(a.Truncated), are(a.Truncated), reasons(a.Cuts))
	}
	return s
}

func are(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// reasons lists counts in brackets: " (ring full 9, window cut 6)". What one
// of them says by thread, such as ring_full_of_17, stands behind it.
func reasons(list []Note) string {
	if len(list) == 0 {
		return ""
	}
	threads := map[string][]string{}
	var whole []Note
	for _, r := range list {
		key, thread, ok := strings.Cut(r.Key, "_of_")
		if ok && slices.ContainsFunc(list, func(n Note) bool { return n.Key == key }) {
			threads[key] = append(threads[key], counted(r.Value)+" of "+thread)
			continue
		}
		whole = append(whole, r)
	}
	var parts []string
	for _, r := range whole {
		part := strings.ReplaceAll(r.Key, "_", " ") + " " + counted(r.Value)
		if by := threads[r.Key]; len(by) > 0 {
			part += ": " + strings.Join(by, " and ")
		}
		parts = append(parts, part)
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func counted(value string) string {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return value
	}
	return thousands(n)
}

// notes joins the other comments, with their keys as words.
func (a Account) notes() string {
	var parts []string
	for _, n := range a.Notes {
		if n.Key == "" {
			parts = append(parts, n.Value)
			continue
		}
		parts = append(parts, strings.ReplaceAll(n.Key, "_", " ")+": "+n.Value)
	}
	return strings.Join(parts, "  ·  ")
}
