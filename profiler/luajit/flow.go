package luajit

// jump returns the target of a jump instruction at pos.
func (i ins) jump(pos int) int { return pos + 1 + i.d() - 0x8000 }

// branches lists where the code goes on behind an instruction, and says
// whether it decides by a comparison. After a tail call it goes on at the
// beginning: only a function that calls itself is followed.
func (p *proto) branches(pos int) (next [2]int, n int, decides bool) {
	const (
		opISF, opUCLO                       = 15, 50
		opJFORI, opFORL, opIFORL, opJFORL   = 78, 79, 80, 81
		opITERL, opIITERL, opRET1, opLastOp = 82, 83, 76, opJMP
	)
	i := p.bc[pos]
	switch op := i.op(); {
	case op <= opISF && pos+1 < len(p.bc) && p.bc[pos+1].op() == opJMP:
		return [2]int{pos + 2, p.bc[pos+1].jump(pos + 1)}, 2, true
	case op == opJMP, op == opUCLO, op == opISNEXT:
		return [2]int{i.jump(pos)}, 1, false
	case op == opFORI, op == opJFORI, op == opFORL, op == opIFORL:
		return [2]int{pos + 1, i.jump(pos)}, 2, true
	case op == opITERL, op == opIITERL:
		return [2]int{pos + 1, i.jump(pos)}, 2, false
	case op == opJFORL:
		return [2]int{pos + 1, p.bodyOf(pos, pos+1)}, 2, true
	case op == opJITERL:
		return [2]int{pos + 1, p.bodyOf(pos, pos-1)}, 2, false
	case op == opCALLT, op == opCALLMT:
		return [2]int{0}, 1, false
	case op >= opRETM && op <= opRET1:
		return next, 0, false
	}
	return [2]int{pos + 1}, 1, false
}

// bodyOf finds the start of a loop whose end has the number of a trace in
// place of its jump: it is behind the jump at the loop's head to target.
func (p *proto) bodyOf(end, target int) int {
	for pos := end - 1; pos >= 0; pos-- {
		switch p.bc[pos].op() {
		case opJMP, opISNEXT, opFORI, opFORI + 1:
			if p.bc[pos].jump(pos) == target {
				return pos + 1
			}
		}
	}
	return end + 1
}

// reach searches the code from a position for another. It returns the
// position itself or, where that is a branch of a comparison and by is true,
// the nearest such comparison on the way; -1 if neither is reached.
func (p *proto) reach(from, to int, by bool) int {
	if from < 0 || from >= len(p.bc) {
		return -1
	}
	seen := make(map[int]bool)
	queue := []int{from}
	for len(queue) > 0 && len(seen) < 2048 {
		pos := queue[0]
		queue = queue[1:]
		if pos < 0 || pos >= len(p.bc) || seen[pos] {
			continue
		}
		seen[pos] = true
		if pos == to && (!by || pos == from) {
			return pos
		}
		next, n, decides := p.branches(pos)
		if by && decides && (next[0] == to || next[1] == to) {
			return pos
		}
		if pos == to {
			return pos
		}
		queue = append(queue, next[:n]...)
	}
	return -1
}

// works finds the first instruction from a position on that does more than
// to move values, as far as the code goes straight on.
func (p *proto) works(from int) int {
	const most = 64
	for pos, n := from, 0; pos >= 0 && pos < len(p.bc) && n < most; n++ {
		op := p.bc[pos].op()
		if op <= 38 && op != opMOV || op > opUGET && op < 85 && op != opISNEXT {
			return pos
		}
		next, count, _ := p.branches(pos)
		if count != 1 {
			return pos
		}
		pos = next[0]
	}
	return from
}

// onlyTailCall returns the function's tail call if it has just one, else its
// beginning.
func (p *proto) onlyTailCall() int {
	only := 0
	for pos, i := range p.bc {
		if i.op() != opCALLT && i.op() != opCALLMT {
			continue
		}
		if only != 0 {
			return 0
		}
		only = pos
	}
	return only
}
