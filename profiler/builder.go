package profiler

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"time"

	"github.com/spinguard/spinguard/profiler/stack"
)

// truncatedRoot is the extra root frame of a stack that ends before the
// entry of its process.
const truncatedRoot = "[truncated]"

// Builder collects stacks and makes one pprof profile of them. Every sample
// that was taken must reach it once: by Add, or by Lost with the reason. The
// zero value is not usable, see NewBuilder. Goroutines may not share it.
type Builder struct {
	start    time.Time
	duration time.Duration
	period   time.Duration

	seed    maphash.Seed
	frames  map[frameKey]uint32
	list    []stack.Frame
	entries map[uint64][]*entry
	count   int // of entries

	shown     uint64
	framesAll uint64
	unnamed   uint64
	lost      tally
	truncated tally
	comments  map[string]string
}

// entry is one stack with one set of labels.
type entry struct {
	frames []uint32 // leaf first, indexes into Builder.list
	labels Labels
	count  int64
	weight time.Duration
}

// frameKey tells frames apart in a profile: by place for Lua, by address for
// machine code.
type frameKey struct {
	kind      stack.Kind
	function  string
	file      string
	line      int
	startLine int
	address   uint64
	mapping   stack.Mapping
}

// NewBuilder returns an empty builder. The period is the time between two
// samples of a thread that is always on a CPU.
func NewBuilder(start time.Time, period time.Duration) *Builder {
	return &Builder{
		start: start, period: period, seed: maphash.MakeSeed(),
		frames: map[frameKey]uint32{}, entries: map[uint64][]*entry{},
		lost: tally{}, truncated: tally{}, comments: map[string]string{},
	}
}

// SetDuration says how long the samples were taken for.
func (b *Builder) SetDuration(d time.Duration) { b.duration = d }

// Comment adds one key=value line to the comments of the profile; a later
// value of the same key wins.
func (b *Builder) Comment(key, value string) { b.comments[key] = value }

// Add counts one sample that stands for the given CPU time.
func (b *Builder) Add(r Result, weight time.Duration, labels Labels) {
	if labels.State == "" {
		labels.State = r.State
	}
	b.AddStack(r.Stack, 1, weight, labels)
}

// AddStack counts n samples of the same stack, which together stand for the
// given CPU time.
func (b *Builder) AddStack(s stack.Stack, n int64, weight time.Duration, labels Labels) {
	ids := make([]uint32, 0, len(s.Frames)+1)
	for i := range s.Frames {
		ids = append(ids, b.frame(s.Frames[i]))
		b.framesAll += uint64(n)
		if unnamed(s.Frames[i]) {
			b.unnamed += uint64(n)
		}
	}
	if s.Truncated == "" && len(ids) == 0 {
		s.Truncated = "no frames"
	}
	if s.Truncated != "" {
		b.truncated.add(reasonKey(s.Truncated), uint64(n))
		ids = append(ids, b.frame(stack.Frame{Function: truncatedRoot}))
	}
	b.shown += uint64(n)
	e := b.entry(ids, labels)
	e.count += n
	e.weight += weight
}

// Lost counts samples that were taken and cannot be shown.
func (b *Builder) Lost(reason string, n uint64) {
	if n > 0 {
		b.lost.add(reasonKey(reason), n)
	}
}

// Counts returns the samples taken, shown, lost and, of the shown ones,
// truncated. Taken is shown plus lost.
func (b *Builder) Counts() (taken, shown, lost, truncated uint64) {
	lost = b.lost.sum()
	return b.shown + lost, b.shown, lost, b.truncated.sum()
}

// LostBy returns the lost samples by reason; their sum is what Counts calls
// lost.
func (b *Builder) LostBy() map[string]uint64 { return maps.Clone(map[string]uint64(b.lost)) }

// Unnamed returns how many frames were shown, once for each sample, and how
// many of them show only where their code lies.
func (b *Builder) Unnamed() (unnamed, frames uint64) { return b.unnamed, b.framesAll }

// Stacks returns the number of distinct stacks.
func (b *Builder) Stacks() int { return b.count }

// keyOf returns what tells a frame apart.
func keyOf(f *stack.Frame) frameKey {
	key := frameKey{kind: f.Kind, function: f.Function, file: f.File, line: f.Line, startLine: f.StartLine}
	if f.Kind == stack.Native || f.Kind == stack.Kernel || f.Kind == stack.Unknown || f.Kind == stack.PCRE {
		key.address = f.Address
	}
	key.mapping = mappingOf(f)
	return key
}

func (b *Builder) frame(f stack.Frame) uint32 {
	key := keyOf(&f)
	id, ok := b.frames[key]
	if !ok {
		id = uint32(len(b.list))
		f.Values = nil
		f.Address = key.address
		b.frames[key] = id
		b.list = append(b.list, f)
	}
	return id
}

func (b *Builder) entry(ids []uint32, labels Labels) *entry {
	h := b.hash(ids, labels)
	for _, e := range b.entries[h] {
		if e.labels == labels && equalIDs(e.frames, ids) {
			return e
		}
	}
	e := &entry{frames: ids, labels: labels}
	b.entries[h] = append(b.entries[h], e)
	b.count++
	return e
}

func (b *Builder) hash(ids []uint32, labels Labels) uint64 {
	var h maphash.Hash
	h.SetSeed(b.seed)
	var word [4]byte
	for _, id := range ids {
		binary.LittleEndian.PutUint32(word[:], id)
		h.Write(word[:])
	}
	for _, p := range labels.pairs() {
		h.WriteString(p[1])
		h.WriteByte(0)
	}
	return h.Sum64()
}

func equalIDs(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
