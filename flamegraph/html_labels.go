package flamegraph

import (
	"cmp"
	"slices"

	"github.com/spinguard/spinguard/profiler/stack"
)

const (
	maxValues = 50   // of one label key; the rest become otherValue
	maxSets   = 5000 // combinations of label values
	maxKeys   = 16   // label keys that get a filter
	// otherValue stands for the values of a key beyond maxValues.
	otherValue = "(other)"
	// stateKey is the label that tells what the VM was doing, worked out from
	// the frames for want of givenState, which the profiler writes.
	stateKey   = "VM state"
	givenState = "vm_state"
)

// faceted returns the profile with label sets that a page can carry: few
// values a key, few sets, and the state of the VM as one more label. It also
// returns the keys that had to go.
func (p *Profile) faceted() (*Profile, []string) {
	weights := p.labelWeights()
	for _, values := range weights {
		keepHeaviest(values)
	}
	var dropped []string
	drop := func() {
		key := mostValues(weights)
		delete(weights, key)
		dropped = append(dropped, key)
	}
	for len(weights) > maxKeys {
		drop()
	}
	for {
		q := p.withFacets(weights)
		if len(q.sets) <= maxSets || len(weights) == 0 {
			return q, dropped
		}
		drop()
	}
}

// labelWeights sums the values of the samples by label key and value.
func (p *Profile) labelWeights() map[string]map[string]int64 {
	bySet := make([]int64, len(p.sets))
	for _, r := range p.stacks {
		bySet[r.set] += r.value
	}
	weights := make(map[string]map[string]int64)
	for i, set := range p.sets {
		for _, l := range set {
			if weights[l.Key] == nil {
				weights[l.Key] = make(map[string]int64)
			}
			weights[l.Key][l.Value] += bySet[i]
		}
	}
	return weights
}

// keepHeaviest keeps the maxValues heaviest values.
func keepHeaviest(values map[string]int64) {
	names := byWeight(values)
	for _, name := range names[min(len(names), maxValues):] {
		delete(values, name)
	}
}

func byWeight(values map[string]int64) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(values[y], values[x]), cmp.Compare(x, y)) })
	return names
}

// mostValues returns the key with the most values, by name among equals.
func mostValues(weights map[string]map[string]int64) string {
	best := ""
	for key, values := range weights {
		if n, m := len(values), len(weights[best]); best == "" || n > m || n == m && key < best {
			best = key
		}
	}
	return best
}

// withFacets replaces every label set by what weights keeps of it and the VM
// state of the stack.
func (p *Profile) withFacets(weights map[string]map[string]int64) *Profile {
	b := newBuilder(p.Name)
	reduced := make([][]Label, len(p.sets))
	for i, set := range p.sets {
		reduced[i] = reduce(set, weights)
	}
	_, said := weights[givenState]
	lua := !said && slices.ContainsFunc(p.frames, func(f Frame) bool { return f.Kind == stack.Lua || f.Kind == stack.Trace })
	known := make(map[stateOf]uint32)
	q := *p
	q.stacks = slices.Clone(p.stacks)
	for i := range q.stacks {
		r := &q.stacks[i]
		key := stateOf{set: r.set}
		if lua {
			key.state = p.vmState(p.frameIDs(*r))
		}
		id, ok := known[key]
		if !ok {
			labels := slices.Clone(reduced[key.set])
			if lua {
				labels = append(labels, Label{stateKey, key.state})
			}
			id = b.set(labels)
			known[key] = id
		}
		r.set = id
	}
	q.sets = b.p.sets
	return &q
}

type stateOf struct {
	set   uint32
	state string
}

// reduce keeps the labels whose key is kept, once each.
func reduce(set []Label, weights map[string]map[string]int64) []Label {
	var out []Label
	for _, l := range set {
		values, kept := weights[l.Key]
		if !kept || len(out) > 0 && out[len(out)-1].Key == l.Key {
			continue
		}
		if _, kept := values[l.Value]; !kept {
			l.Value = otherValue
		}
		out = append(out, l)
	}
	return out
}

// vmState tells what the Lua VM did, from the frames, root first: native
// frames alone at the leaf were called by what lies below them.
func (p *Profile) vmState(ids []uint32) string {
	native := false
	for _, id := range slices.Backward(ids) {
		switch f := p.frames[id]; f.Kind {
		case stack.VM:
			return f.Name
		case stack.Kernel:
			return "kernel"
		case stack.PCRE:
			return "PCRE JIT"
		case stack.Lua, stack.Trace, stack.Builtin:
			switch {
			case native || f.Kind == stack.Builtin:
				return "C called from Lua"
			case f.Kind == stack.Trace:
				return "compiled"
			}
			return "interpreter"
		case stack.Native:
			native = true
		}
	}
	return "outside Lua"
}

// pageLabels numbers the values of each key, heaviest first.
func (p *Profile) pageLabels() pageLabels {
	weights := p.labelWeights()
	out := pageLabels{Keys: []string{}, Values: [][]string{}}
	for key := range weights {
		out.Keys = append(out.Keys, key)
	}
	slices.Sort(out.Keys)
	numbers := make(map[Label]int)
	for _, key := range out.Keys {
		values := byWeight(weights[key])
		for i, v := range values {
			numbers[Label{key, v}] = i
		}
		out.Values = append(out.Values, values)
	}
	for _, set := range p.sets {
		row := slices.Repeat([]int{-1}, len(out.Keys))
		for _, l := range set {
			if i, ok := slices.BinarySearch(out.Keys, l.Key); ok {
				row[i] = numbers[l]
			}
		}
		out.Sets = append(out.Sets, row)
	}
	return out
}
