package profiler

import (
	"hash/maphash"

	"github.com/spinguard/spinguard/profiler/stack"
)

// hold returns the shared copy of a stack, with one more reference to it.
func (r *Recorder) hold(s stack.Stack) *heldStack {
	if r.step >= cutDepth {
		s = cutStack(s, cutFrames)
	}
	keys := make([]frameKey, len(s.Frames))
	for i := range s.Frames {
		keys[i] = keyOf(&s.Frames[i])
	}
	hash := r.hash(keys, s.Truncated)
	for _, h := range r.stacks[hash] {
		if h.is(keys, s.Truncated) {
			h.refs++
			return h
		}
	}
	h := &heldStack{hash: hash, truncated: s.Truncated, refs: 1, frames: make([]*heldFrame, len(keys))}
	for i := range keys {
		h.frames[i] = r.holdFrame(keys[i], &s.Frames[i])
	}
	r.stacks[hash] = append(r.stacks[hash], h)
	r.used += h.cost()
	return h
}

func (r *Recorder) holdFrame(key frameKey, f *stack.Frame) *heldFrame {
	held := r.frames[key]
	if held == nil {
		held = &heldFrame{key: key, frame: *f}
		held.frame.Values = nil
		r.frames[key] = held
		r.used += held.cost()
	}
	held.refs++
	return held
}

// release gives back one reference to a stack, and the stack with its last.
func (r *Recorder) release(h *heldStack) {
	if h.refs--; h.refs > 0 {
		return
	}
	r.used -= h.cost()
	same := r.stacks[h.hash]
	for i := range same {
		if same[i] == h {
			same = append(same[:i:i], same[i+1:]...)
			break
		}
	}
	if len(same) == 0 {
		delete(r.stacks, h.hash)
	} else {
		r.stacks[h.hash] = same
	}
	for _, f := range h.frames {
		if f.refs--; f.refs == 0 {
			r.used -= f.cost()
			delete(r.frames, f.key)
		}
	}
}

func (h *heldStack) cost() int { return stackCost + slotCost*len(h.frames) + len(h.truncated) }

func (f *heldFrame) cost() int { return frameCost + len(f.frame.Function) + len(f.frame.File) }

func (h *heldStack) is(keys []frameKey, truncated string) bool {
	if len(h.frames) != len(keys) || h.truncated != truncated {
		return false
	}
	for i := range keys {
		if h.frames[i].key != keys[i] {
			return false
		}
	}
	return true
}

// full returns the stack of a record with its values.
func (rec *record) full() stack.Stack {
	s := stack.Stack{Frames: make([]stack.Frame, len(rec.stack.frames)), Truncated: rec.stack.truncated}
	for i, f := range rec.stack.frames {
		s.Frames[i] = f.frame
	}
	for _, v := range rec.values {
		if v.at < len(s.Frames) {
			s.Frames[v.at].Values = v.list
		}
	}
	return s
}

func (r *Recorder) hash(keys []frameKey, truncated string) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	for i := range keys {
		maphash.WriteComparable(&h, keys[i])
	}
	h.WriteString(truncated)
	return h.Sum64()
}
