package luajit

import (
	"cmp"
	"slices"
)

// loop is a stretch of bytecode that a jump back leads through again. head is
// the instruction by whose line its source begins.
type loop struct{ head, from, to int }

// mostLoops bounds how many loops around one instruction are told.
const mostLoops = 3

// loopLines returns the lines at which the loops around an instruction begin,
// innermost first. The line that runs is where a sample hit, which in a
// compiled loop may be any of its lines; where the loop is written is what one
// looks for.
func (p *proto) loopLines(pos int) []int {
	p.findLoops.Do(func() { p.loops = p.allLoops() })
	var lines []int
	for _, l := range p.loops {
		line := p.line(l.head)
		if l.from <= pos && pos <= l.to && line > 0 && !slices.Contains(lines, line) && len(lines) < mostLoops {
			lines = append(lines, line)
		}
	}
	return lines
}

// allLoops finds the loops of a function, smaller ones first.
func (p *proto) allLoops() []loop {
	var loops []loop
	for end := range p.bc {
		if l, ok := p.loopTo(end); ok {
			loops = append(loops, l)
		}
	}
	slices.SortStableFunc(loops, func(a, b loop) int { return cmp.Compare(a.to-a.from, b.to-b.from) })
	return loops
}

// loopTo returns the loop that ends with the jump back at an instruction.
func (p *proto) loopTo(end int) (loop, bool) {
	const opUCLO, opFORL, opJFORL, opITERL = 50, 79, 81, 82
	i := p.bc[end]
	switch op := i.op(); {
	case op == opJMP, op == opUCLO:
		if to := i.jump(end); to > 0 && to <= end {
			return loop{to, to, end}, true // while, repeat and goto
		}
	case op >= opFORL && op <= opJFORL, op >= opITERL && op <= opJITERL:
		// What is in front of the body prepares the loop, or enters it.
		if next, _, _ := p.branches(end); next[1] > 1 && next[1] <= end {
			return loop{next[1] - 1, next[1] - 1, end}, true
		}
	}
	return loop{}, false
}
