package flamegraph

import (
	"time"

	"github.com/spinguard/spinguard/profiler/stack"
)

// Frame is one place in the code as the pictures show it. Two frames of a
// stack are the same box when all of its fields are equal.
type Frame struct {
	Name  string     // function, or module+0x… where it has no name
	Place string     // Lua: "wrr.lua:12"; native: source file if known; else ""
	Image string     // path of the image of a native frame, "" if unknown
	Kind  stack.Kind // what sort of code it is
}

// Label is the text inside the box: the name, and for Lua the line.
func (f Frame) Label() string {
	if f.Place != "" && (f.Kind == stack.Lua || f.Kind == stack.Trace) {
		return f.Name + " " + f.Place
	}
	return f.Name
}

// Label is one key and value that a sample carries, such as upstream=media.
type Label struct{ Key, Value string }

// Profile is a set of weighted stacks, merged and sorted. It does not change
// once it is read, so goroutines may share it.
type Profile struct {
	Name     string        // where it came from, for titles
	Type     string        // "cpu", "samples", ...
	Unit     string        // of the values: "nanoseconds", "count", ...
	Start    time.Time     // zero if unknown
	Duration time.Duration // zero if unknown
	Account  Account       // what was taken, shown and lost

	frames  []Frame
	words   arena
	stacks  []record
	sets    [][]Label            // label sets; number 0 is the empty one
	total   int64                // sum of the values that are not of the base
	baseSum int64                // sum of the values of the base
	diff    bool                 // a difference: records of the base are present
	self    map[stack.Kind]int64 // the values by the kind of the leaf, those of a base left out
}

// record is one stack: depth frame numbers, root first, at one place in the
// arena. shared of them, from the root on, are those of the record before it:
// kept since a million stacks do not fit into a processor's cache, so that each
// pass that compares frames costs a tenth of the whole rendering.
type record struct {
	value  int64
	at     uint32
	set    uint32
	depth  uint16
	shared uint16
	base   bool
}

// Total returns the sum of all values, in Unit, without those of a base.
func (p *Profile) Total() int64 { return p.total }

// BaseTotal returns the sum of the base's values; 0 unless Differential.
func (p *Profile) BaseTotal() int64 { return p.baseSum }

// Differential tells whether the profile compares two.
func (p *Profile) Differential() bool { return p.diff }

// Stacks returns how many distinct stacks the profile holds. The same frames
// with other labels count as another stack.
func (p *Profile) Stacks() int { return len(p.stacks) }

func (p *Profile) frameIDs(r record) []uint32 { return p.words.get(r.at, r.depth) }
