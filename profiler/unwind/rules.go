package unwind

import (
	"errors"
	"fmt"

	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/unwind/cfi"
)

// errUnknown says that a register is needed that is not known.
var errUnknown = errors.New("is unknown")

// frameContext lets expressions look at a frame.
type frameContext struct {
	*stackMemory
	regs *stack.Registers
	bias uint64
}

func (c frameContext) Register(n int) (uint64, bool) { return c.regs.Get(n) }
func (c frameContext) Bias() uint64                  { return c.bias }

// byRules applies the rules of a function to a frame.
func (w *walk) byRules(f *Frame, r *region, function *cfi.Function) (Frame, error) {
	row, ok := function.Row(f.Lookup() - r.bias)
	if !ok {
		return Frame{}, fmt.Errorf("broken rules for %s", w.u.Name(f.Lookup()))
	}
	f.Signal = function.Signal
	ra := row.Rule(function.ReturnReg)
	if ra.Op == cfi.Undefined {
		f.Found = Rules
		return Frame{}, errEntry
	}
	cfa, err := w.frameAddress(f, r, row)
	if err != nil {
		if errors.Is(err, errUnknown) {
			if next, scanErr := w.scanRow(f, r, row, function.ReturnReg); scanErr == nil {
				return next, nil
			}
		}
		return Frame{}, fmt.Errorf("%w, for %s", err, w.u.Name(f.Lookup()))
	}
	next, err := w.applyRow(f, r, row, function.ReturnReg, cfa)
	if err != nil {
		if w.arch.link >= 0 && !f.ReturnAddress { // taken off the stack already
			if next, linkErr := w.byLink(f, r); linkErr == nil {
				return next, nil
			}
		}
		return Frame{}, err
	}
	return w.step(f, next, cfa+w.arch.pushedByPLT(function), Rules)
}

// frameAddress works out the CFA of a frame. Where only a frame record is
// known, it follows from where the function keeps that.
func (w *walk) frameAddress(f *Frame, r *region, row *cfi.Row) (uint64, error) {
	if kept := row.Rule(uint8(w.arch.fp)); f.record && kept.Op == cfi.Offset {
		return f.Registers.Value[w.arch.fp] - uint64(kept.N), nil
	}
	return w.value(f, r, row.CFA, 0)
}

// applyRow works out the caller's registers from a CFA.
func (w *walk) applyRow(f *Frame, r *region, row *cfi.Row, returnReg uint8, cfa uint64) (Frame, error) {
	next := Frame{Registers: f.Registers}
	if !f.Signal {
		next.Registers.Known &= w.arch.kept
	}
	next.Registers.Known &^= 1<<w.arch.sp | 1<<w.arch.pc
	for _, rule := range row.Rules {
		if rule.Op == cfi.Undefined {
			next.Registers.Known &^= 1 << rule.Target
			continue
		}
		v, err := w.value(f, r, rule, cfa)
		switch {
		case err == nil:
			next.Registers.Set(int(rule.Target), v)
		case rule.Target == returnReg:
			return Frame{}, err
		default:
			next.Registers.Known &^= 1 << rule.Target
		}
	}
	return w.setReturn(f, next, row, int(returnReg))
}

// setReturn moves the return address column to the program counter.
func (w *walk) setReturn(f *Frame, next Frame, row *cfi.Row, returnReg int) (Frame, error) {
	ra, ok := next.Registers.Get(returnReg)
	if !ok {
		return Frame{}, fmt.Errorf("return address of %s %w", w.u.Name(f.Lookup()), errUnknown)
	}
	if f.ReturnAddress && returnReg == w.arch.link && row.Rule(uint8(returnReg)).Op == cfi.Same {
		return Frame{}, fmt.Errorf("no return address rule for %s", w.u.Name(f.Lookup()))
	}
	next.Registers.Set(w.arch.pc, ra&w.arch.addrMask)
	return next, nil
}

// value applies one rule.
func (w *walk) value(f *Frame, r *region, rule cfi.Rule, cfa uint64) (uint64, error) {
	switch rule.Op {
	case cfi.Offset:
		return w.mem.word(cfa + uint64(rule.N))
	case cfi.ValueOffset:
		return cfa + uint64(rule.N), nil
	case cfi.Register:
		v, ok := f.Registers.Get(int(rule.Source))
		if !ok {
			return 0, fmt.Errorf("register %d %w", rule.Source, errUnknown)
		}
		return v + uint64(rule.N), nil
	case cfi.Expression, cfi.ValueExpr:
		v, err := cfi.Evaluate(rule.Expr, cfa, frameContext{w.mem, &f.Registers, r.bias})
		if err != nil || rule.Op == cfi.ValueExpr {
			return v, err
		}
		return w.mem.word(v)
	}
	return 0, errors.New("no rule for the frame address")
}
