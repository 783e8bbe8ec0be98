package flamegraph

import "slices"

// callers returns the profile with every stack turned over: the leaf becomes
// the root, and its callers follow.
func (p *Profile) callers() *Profile {
	out := *p
	out.words = arena{chunks: make([][]uint32, len(p.words.chunks))}
	for i, c := range p.words.chunks {
		out.words.chunks[i] = slices.Clone(c)
	}
	out.stacks = slices.Clone(p.stacks)
	for _, r := range out.stacks {
		slices.Reverse(out.frameIDs(r))
	}
	out.sortStacks()
	return &out
}
