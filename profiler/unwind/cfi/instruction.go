package cfi

// The call frame instructions (DW_CFA). The first three keep an operand in
// their low six bits.
const (
	cfaAdvanceLoc = 0x40
	cfaOffset     = 0x80
	cfaRestore    = 0xc0

	cfaNop              = 0x00
	cfaSetLoc           = 0x01
	cfaAdvanceLoc1      = 0x02
	cfaAdvanceLoc2      = 0x03
	cfaAdvanceLoc4      = 0x04
	cfaOffsetExtended   = 0x05
	cfaRestoreExtended  = 0x06
	cfaUndefined        = 0x07
	cfaSameValue        = 0x08
	cfaRegister         = 0x09
	cfaRememberState    = 0x0a
	cfaRestoreState     = 0x0b
	cfaDefCFA           = 0x0c
	cfaDefCFARegister   = 0x0d
	cfaDefCFAOffset     = 0x0e
	cfaDefCFAExpression = 0x0f
	cfaExpression       = 0x10
	cfaOffsetExtendedSF = 0x11
	cfaDefCFASF         = 0x12
	cfaDefCFAOffsetSF   = 0x13
	cfaValOffset        = 0x14
	cfaValOffsetSF      = 0x15
	cfaValExpression    = 0x16
	cfaNegateRAState    = 0x2d // arm64
	cfaGNUArgsSize      = 0x2e
	cfaGNUNegOffset     = 0x2f
)

// instruction runs one instruction; false if there is no such.
func (m *machine) instruction(r *reader) bool {
	op := r.u8()
	low := uint64(op & 0x3f)
	switch op & 0xc0 {
	case cfaAdvanceLoc:
		m.advance(m.loc + low*m.cie.codeAlign)
		return true
	case cfaOffset:
		m.set(low, Rule{Op: Offset, N: int64(r.uleb()) * m.cie.dataAlign})
		return true
	case cfaRestore:
		m.restore(low)
		return true
	}
	switch op {
	case cfaNop:
	case cfaSetLoc:
		m.advance(r.pointer(m.cie.pointers, m.addr))
	case cfaAdvanceLoc1:
		m.advance(m.loc + uint64(r.u8())*m.cie.codeAlign)
	case cfaAdvanceLoc2:
		m.advance(m.loc + uint64(r.u16())*m.cie.codeAlign)
	case cfaAdvanceLoc4:
		m.advance(m.loc + uint64(r.u32())*m.cie.codeAlign)
	case cfaRememberState:
		return m.remember()
	case cfaRestoreState:
		return m.recall()
	case cfaGNUArgsSize:
		r.uleb()
	case cfaNegateRAState:
		m.now.signed = !m.now.signed
		m.dirty = true
	default:
		return m.defineCFA(op, r) || m.defineRegister(op, r)
	}
	return true
}

// defineCFA runs the instructions that change the CFA's rule.
func (m *machine) defineCFA(op uint8, r *reader) bool {
	rule := m.now.cfa
	switch op {
	case cfaDefCFA:
		rule = Rule{Op: Register, Source: m.register(r), N: int64(r.uleb())}
	case cfaDefCFASF:
		rule = Rule{Op: Register, Source: m.register(r), N: r.sleb() * m.cie.dataAlign}
	case cfaDefCFARegister:
		rule.Op, rule.Source = Register, m.register(r)
	case cfaDefCFAOffset:
		rule.N = int64(r.uleb())
	case cfaDefCFAOffsetSF:
		rule.N = r.sleb() * m.cie.dataAlign
	case cfaDefCFAExpression:
		rule = Rule{Op: ValueExpr, Expr: block(r)}
	default:
		return false
	}
	m.now.cfa = rule
	m.dirty = true
	return true
}

// defineRegister runs the instructions that change a register's rule.
func (m *machine) defineRegister(op uint8, r *reader) bool {
	if op < cfaOffsetExtended || op > cfaValExpression && op != cfaGNUNegOffset {
		return false
	}
	reg := r.uleb()
	switch op {
	case cfaOffsetExtended:
		m.set(reg, Rule{Op: Offset, N: int64(r.uleb()) * m.cie.dataAlign})
	case cfaOffsetExtendedSF:
		m.set(reg, Rule{Op: Offset, N: r.sleb() * m.cie.dataAlign})
	case cfaGNUNegOffset:
		m.set(reg, Rule{Op: Offset, N: -int64(r.uleb()) * m.cie.dataAlign})
	case cfaRestoreExtended:
		m.restore(reg)
	case cfaUndefined:
		m.set(reg, Rule{Op: Undefined})
	case cfaSameValue:
		m.set(reg, Rule{Op: Same})
	case cfaRegister:
		m.set(reg, Rule{Op: Register, Source: m.register(r)})
	case cfaExpression:
		m.set(reg, Rule{Op: Expression, Expr: block(r)})
	case cfaValOffset:
		m.set(reg, Rule{Op: ValueOffset, N: int64(r.uleb()) * m.cie.dataAlign})
	case cfaValOffsetSF:
		m.set(reg, Rule{Op: ValueOffset, N: r.sleb() * m.cie.dataAlign})
	case cfaValExpression:
		m.set(reg, Rule{Op: ValueExpr, Expr: block(r)})
	default:
		return false
	}
	return true
}

func (m *machine) set(reg uint64, rule Rule) {
	if reg >= Registers {
		return // a vector register
	}
	m.now.rules[reg] = rule
	m.dirty = true
}

func (m *machine) restore(reg uint64) {
	if reg < Registers {
		m.set(reg, m.initial.rules[reg])
	}
}

func (m *machine) remember() bool {
	if len(m.stack) == maxRemembered {
		return false
	}
	m.stack = append(m.stack, m.now)
	return true
}

func (m *machine) recall() bool {
	if len(m.stack) == 0 {
		return false
	}
	m.now = m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	m.dirty = true
	return true
}

// register reads a register number that a value comes from.
func (m *machine) register(r *reader) uint8 {
	reg := r.uleb()
	if reg >= Registers {
		r.bad = true
		return 0
	}
	return uint8(reg)
}

// block reads the bytes of an expression.
func block(r *reader) []byte {
	n := r.uleb()
	if n > uint64(len(r.data)) {
		r.bad = true
		return nil
	}
	return r.take(int(n))
}
