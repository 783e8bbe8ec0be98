package flamegraph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Diff returns a profile that compares two: its boxes have the values of now
// and remember those of base. Shares of the whole are compared, so the two
// may be of different length. Units must be the same; when they are not,
// samples of cpu time and counts of samples are still comparable by share, so
// this is noted in the account and not an error.
func Diff(base, now *Profile) (*Profile, error) {
	b := newBuilder(now.Name)
	p := b.p
	p.Type, p.Unit, p.Start, p.Duration = now.Type, now.Unit, now.Start, now.Duration
	p.Account = now.Account
	p.Account.Notes = slices.Concat([]Note{{Key: "base", Value: base.Name}}, base.Account.asBase(now.Account.Notes), now.Account.Notes)
	if base.Unit != now.Unit {
		p.Account.Notes = append(p.Account.Notes, Note{Key: "base_unit", Value: base.Unit})
	}
	p.diff = true
	if err := b.join(now, false); err != nil {
		return nil, fmt.Errorf("%s: %w", now.Name, err)
	}
	if err := b.join(base, true); err != nil {
		return nil, fmt.Errorf("%s: %w", base.Name, err)
	}
	return b.finish(), nil
}

// asBase says in notes what the profile that another one is compared with says
// of its completeness, and what else it says in words that the other one does not.
func (a Account) asBase(known []Note) []Note {
	var out []Note
	if a.Taken >= 0 && a.Shown >= 0 && a.Lost >= 0 {
		out = append(out, Note{Key: "base_samples", Value: strings.TrimSuffix(strings.TrimPrefix(a.Sentence(), "Samples: "), ".")})
	}
	for _, n := range a.Notes {
		if _, err := strconv.ParseFloat(n.Value, 64); n.Key != "" && err != nil && !slices.Contains(known, n) {
			out = append(out, Note{Key: "base_" + n.Key, Value: n.Value})
		}
	}
	return out
}

// join adds the stacks of a whole profile; those of its own base, if it has
// one, are left out.
func (b *builder) join(p *Profile, base bool) error {
	frames := make([]uint32, len(p.frames))
	for i, f := range p.frames {
		frames[i] = b.frame(f)
	}
	sets := make([]uint32, len(p.sets))
	for i, s := range p.sets {
		sets[i] = b.set(s)
	}
	var ids []uint32
	for _, r := range p.stacks {
		if r.base {
			continue
		}
		ids = ids[:0]
		for _, id := range p.frameIDs(r) {
			ids = append(ids, frames[id])
		}
		if err := b.add(ids, sets[r.set], r.value, base); err != nil {
			return err
		}
	}
	return nil
}
