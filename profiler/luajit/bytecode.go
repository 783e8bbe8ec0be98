package luajit

// ins is one bytecode instruction.
type ins uint32

func (i ins) op() int { return int(i & 0xff) }
func (i ins) a() int  { return int(i >> 8 & 0xff) }
func (i ins) b() int  { return int(i >> 24) }
func (i ins) c() int  { return int(i >> 16 & 0xff) }
func (i ins) d() int  { return int(i >> 16) }

// The opcodes that names are derived from. Everything up to JMP has the same
// number in all builds with 64-bit references; the derivation proves it by the
// numbers of GGET, GSET and JMP in the interpreter's code. Newer builds add bit
// operators behind JMP, so that function headers have other numbers.
const (
	opMOV    = 18
	opKNIL   = 44
	opUGET   = 45
	opGGET   = 54
	opGSET   = 55
	opTGETS  = 57
	opTSETM  = 63
	opCALLM  = 65
	opCALL   = 66
	opCALLMT = 67
	opCALLT  = 68
	opITERC  = 69
	opITERN  = 70
	opISNEXT = 72
	opRETM   = 73
	opFORI   = 77
	opJITERL = 84
	opJMP    = 88
)

// setsA says that the instruction writes slot A.
func setsA(op int) bool {
	switch {
	case op == 12, op == 13, op >= opMOV && op < opKNIL, op == opUGET:
		return true
	case op >= 51 && op <= opGGET, op >= 56 && op <= 59, op > opJMP:
		return true
	}
	return false
}

// setsFromA says that the instruction writes slot A and everything above.
func setsFromA(op int) bool {
	switch {
	case op == opKNIL, op == opTSETM, op >= opCALLM && op <= opRETM:
		return true
	case op >= opFORI && op <= opJITERL:
		return true
	}
	return false
}

// isCall says that the instruction calls the function in its slot A.
func isCall(op int) bool { return op >= opCALLM && op <= opITERN }

// metamethod names what an instruction falls back to when its operands have
// no meaning of their own for it.
func metamethod(op int) string {
	arith := [...]string{"__add", "__sub", "__mul", "__div", "__mod"}
	switch {
	case op <= 1:
		return "__lt"
	case op <= 3:
		return "__le"
	case op <= 11:
		return "__eq"
	case op == 20:
		return "__unm"
	case op == 21:
		return "__len"
	case op >= 22 && op <= 36:
		return arith[(op-22)%5]
	case op == 37:
		return "__pow"
	case op == 38:
		return "__concat"
	case op == opGGET, op >= 56 && op <= 59:
		return "__index"
	case op == opGSET, op >= 60 && op <= 64:
		return "__newindex"
	case op >= 51 && op <= 53:
		return "__gc"
	}
	return ""
}
