package luajit

// place says which bytecode the machine code between one snapshot and the
// next was made from. A snapshot itself says where the interpreter would go
// on, and for a comparison that is the branch that the trace does not take:
// for a loop, the line behind it.
type place struct {
	proto *proto
	at    int    // instruction that the first part belongs to
	split uint64 // offset into the code behind the last exit
	after int    // instruction that the rest belongs to
}

// places finds them for all snapshots of a trace, by following the bytecode
// from one snapshot to the next.
func (vm *VM) places(r reader, t *trace, snaps []snapshot) []place {
	type stand struct {
		proto *proto
		pos   int
	}
	code := r.bytes(t.mcode, int(t.size))
	frames := map[uint64]stand{} // by distance from the trace's base
	var out []place
	for i, s := range snaps {
		p := vm.protoOf(r, s.pc)
		if p == nil || !r.spend(64*len(p.bc)) { // the search for a comparison below
			return nil
		}
		pos := p.pos(s.pc)
		here := place{proto: p, at: pos, after: pos}
		from, ok := frames[s.delta]
		if !ok || from.proto != p {
			from = stand{p, 0}
			if i == 0 {
				from.pos = pos
			}
		}
		if i > 0 {
			here.at, here.after = p.decide(from.pos, pos, vm.compares(r, t, snaps, i))
		}
		end := t.size
		if i+1 < len(snaps) {
			end = uint64(snaps[i+1].mcofs)
		}
		here.split = lastExit(code, uint64(s.mcofs), end)
		frames[s.delta] = stand{p, here.after}
		here.after = p.works(here.after)
		out = append(out, here)
	}
	return out
}

// decide returns the comparison that a snapshot belongs to and the branch that
// the trace takes, or the snapshot's own position twice.
func (p *proto) decide(from, pos int, compares bool) (at, after int) {
	if !compares {
		return pos, pos
	}
	at = p.reach(from, pos, true)
	if at < 0 {
		at = p.nearestDecision(pos)
	}
	if at < 0 {
		return pos, pos
	}
	next, n, decides := p.branches(at)
	switch {
	case !decides || n != 2:
		return pos, pos
	case next[0] == pos:
		return at, next[1]
	case next[1] == pos:
		return at, next[0]
	}
	return pos, pos
}

// nearestDecision finds the nearest comparison with a branch to pos.
func (p *proto) nearestDecision(pos int) int {
	best := -1
	for c := range p.bc {
		next, _, decides := p.branches(c)
		if decides && (next[0] == pos || next[1] == pos) && (best < 0 || abs(c-pos) < abs(best-pos)) {
			best = c
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// compares says that the first instruction behind a snapshot is a comparison
// that leaves the trace, or was one that the compiler could leave out.
func (vm *VM) compares(r reader, t *trace, snaps []snapshot, i int) bool {
	const lastComparison, guard = 9, 0x80
	if i+1 < len(snaps) && snaps[i+1].ref == snaps[i].ref {
		return true
	}
	b := r.bytes(t.ir+8*uint64(snaps[i].ref), 8)
	return b != nil && b[4]&guard != 0 && b[5] <= lastComparison
}
