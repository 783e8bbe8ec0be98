package cfi

import "sort"

// Registers is how many DWARF registers have rules here: enough for the
// integer registers of x86-64 and arm64. Vector registers are passed over.
const Registers = 33

// Op says how a rule finds a value.
type Op uint8

// The kinds of rules.
const (
	Same        Op = iota // the register is unchanged
	Undefined             // the value is lost; of the return address: no caller
	Offset                // saved at CFA + N
	ValueOffset           // is CFA + N
	Register              // is in register Source, plus N
	Expression            // saved at the address that the expression gives
	ValueExpr             // is what the expression gives
)

// Rule finds one value of the caller's frame.
type Rule struct {
	Op     Op
	Target uint8  // the register that the rule is about
	Source uint8  // of Register
	N      int64  // offset
	Expr   []byte // of Expression and ValueExpr
}

// Row holds the rules from one address of a function to the next row's.
type Row struct {
	Start     uint64
	CFA       Rule   // Register or ValueExpr
	Rules     []Rule // by target register; those without an entry are Same
	SignedRAs bool   // arm64: return addresses carry a signature
}

// Rule returns the rule of a register.
func (r *Row) Rule(reg uint8) Rule {
	for _, rule := range r.Rules {
		if rule.Target == reg {
			return rule
		}
	}
	return Rule{Op: Same, Target: reg}
}

// Function is one function with its rules.
type Function struct {
	Start, End uint64
	Rows       []Row // sorted by start, at least one unless broken
	ReturnReg  uint8 // the column of the return address
	Signal     bool  // a signal trampoline: its caller was interrupted, not left by a call
	Broken     bool  // the instructions behind the last row made no sense
}

// Row returns the rules at a vaddr of the function.
func (f *Function) Row(pc uint64) (*Row, bool) {
	i := sort.Search(len(f.Rows), func(i int) bool { return f.Rows[i].Start > pc })
	if i == 0 || f.Broken && i == len(f.Rows) {
		return nil, false
	}
	return &f.Rows[i-1], true
}
