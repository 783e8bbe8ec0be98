package bpf

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Kernels before 6.8 take a loop only if its way back is a jump: a way back by
// falling through, which clang makes at its own discretion, is refused as a
// "back-edge".
func TestLoopsAreOnesThatOldKernelsTake(t *testing.T) {
	samplers, err := loadSampler()
	if err != nil {
		t.Fatal(err)
	}
	connects, err := loadConnects()
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []map[string]asm.Instructions{programs(samplers.Programs), programs(connects.Programs)} {
		for name, list := range spec {
			for _, at := range fallsBack(list) {
				t.Errorf("%s: instruction %d falls through into the head of a loop that it is in", name, at)
			}
		}
	}
}

func TestFallsBackFindsSuchALoop(t *testing.T) {
	list := asm.Instructions{
		asm.Mov.Imm(asm.R0, 0),
		{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Ja), Offset: 1},
		asm.Add.Imm(asm.R0, 1), // falls into the head
		asm.Mov.Imm(asm.R1, 0),
		{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.JLT).SetSource(asm.ImmSource), Dst: asm.R0, Constant: 9, Offset: -3},
		asm.Return(),
	}
	if got := fallsBack(list); len(got) != 1 || got[0] != 2 {
		t.Errorf("falls back at %v, want at 2", got)
	}
}

func programs(specs map[string]*ebpf.ProgramSpec) map[string]asm.Instructions {
	out := map[string]asm.Instructions{}
	for name, p := range specs {
		out[name] = p.Instructions
	}
	return out
}

// fallsBack returns the instructions that are no jumps and are followed by one
// from which they were reached, in the order in which the verifier walks: next
// instruction first, then the jump's target.
func fallsBack(list asm.Instructions) (found []int) {
	raw := map[int]asm.Instruction{}
	for iter := list.Iterate(); iter.Next(); {
		raw[int(iter.Offset)] = *iter.Ins
	}
	const onWay, done = 1, 2
	state := map[int]int{}
	var walk func(at int)
	walk = func(at int) {
		ins := raw[at]
		state[at] = onWay
		next := at + int(ins.Size()/asm.InstructionSize)
		follow := func(to int) {
			if state[to] == 0 {
				walk(to)
			}
		}
		op := ins.OpCode.JumpOp()
		jumps := ins.OpCode.Class().IsJump() && op != asm.Call && op != asm.Exit
		switch {
		case op == asm.Exit:
		case jumps && op == asm.Ja:
			follow(next + int(ins.Offset))
		case jumps:
			follow(next)
			follow(next + int(ins.Offset))
		case state[next] == onWay:
			found = append(found, at)
		default:
			follow(next)
		}
		state[at] = done
	}
	walk(0)
	return found
}
