package flamegraph

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/spinguard/spinguard/profiler/stack"
)

// maxSum bounds the sum of all values, so that sums of parts never overflow.
const maxSum = 1 << 62

var (
	errSum   = errors.New("sample values: sum exceeds 2^62")
	errWords = errors.New("stacks: more than 2^32 frames in all")
)

// truncatedFrame is the extra root of a stack whose outer part is not known.
var truncatedFrame = Frame{Name: "[truncated]"}

// builder collects the stacks of a profile.
type builder struct {
	p      *Profile
	frames map[Frame]uint32
	sets   map[string]uint32
	run    []uint32
}

func newBuilder(name string) *builder {
	return &builder{
		p:      &Profile{Name: name, sets: [][]Label{nil}},
		frames: make(map[Frame]uint32),
		sets:   map[string]uint32{"": 0},
	}
}

// frame returns the number of a frame after cleaning its texts.
func (b *builder) frame(f Frame) uint32 {
	f.Name, f.Place, f.Image = clean(f.Name), clean(f.Place), clean(f.Image)
	if f.Name == "" {
		f.Name, f.Kind = "[unknown]", stack.Unknown
	}
	id, ok := b.frames[f]
	if !ok {
		id = uint32(len(b.p.frames))
		b.frames[f] = id
		b.p.frames = append(b.p.frames, f)
	}
	return id
}

// set returns the number of a label set; labels need no order.
func (b *builder) set(labels []Label) uint32 {
	if len(labels) == 0 {
		return 0
	}
	slices.SortFunc(labels, func(x, y Label) int {
		return cmp.Or(strings.Compare(x.Key, y.Key), strings.Compare(x.Value, y.Value))
	})
	var key strings.Builder
	for _, l := range labels {
		key.WriteString(l.Key + "\x00" + l.Value + "\x00")
	}
	id, ok := b.sets[key.String()]
	if !ok {
		id = uint32(len(b.p.sets))
		b.sets[key.String()] = id
		b.p.sets = append(b.p.sets, slices.Clone(labels))
	}
	return id
}

// add stores one stack, root first; one without frames is [unknown]. It keeps
// no reference to ids. A negative
// value is a value of the base, as in pprof's own differences.
func (b *builder) add(ids []uint32, set uint32, value int64, base bool) error {
	if value < 0 {
		base, value = !base, -max(value, -maxSum)
	}
	if value == 0 {
		return nil
	}
	sum := &b.p.total
	if base {
		sum, b.p.diff = &b.p.baseSum, true
	}
	if value > maxSum-*sum {
		return errSum
	}
	switch {
	case len(ids) == 0:
		b.run = append(b.run[:0], b.frame(Frame{}))
		ids = b.run
	case len(ids) > maxDepth:
		ids = b.cut(ids)
	}
	at, ok := b.p.words.put(ids)
	if !ok {
		return errWords
	}
	*sum += value
	b.p.stacks = append(b.p.stacks, record{value: value, at: at, set: set, depth: uint16(len(ids)), base: base})
	return nil
}

// cut keeps the frames nearest to the leaf and says so at the root.
func (b *builder) cut(ids []uint32) []uint32 {
	b.run = append(b.run[:0], b.frame(truncatedFrame))
	b.run = append(b.run, ids[len(ids)-maxDepth+1:]...)
	return b.run
}

// finish sorts and merges the stacks and gives the profile away.
func (b *builder) finish() *Profile {
	p := b.p
	p.rank()
	p.sortStacks()
	b.p = nil
	return p
}
