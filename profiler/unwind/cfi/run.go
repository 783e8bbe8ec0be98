package cfi

import "slices"

const (
	maxFunctionRows = 1 << 14
	maxRemembered   = 64
)

// state is the rules at one point of the instructions.
type state struct {
	cfa    Rule
	rules  [Registers]Rule
	signed bool
}

// machine runs the instructions of one function.
type machine struct {
	cie      *cie
	addr     uint64 // vaddr of the section, for DW_CFA_set_loc
	loc      uint64
	now      state
	initial  state
	stack    []state
	rows     []Row
	dirty    bool // the rules changed since the last row
	finished bool
}

// run works out the rows of a function.
func (t *Table) run(f function) *Function {
	result := &Function{Start: f.start, End: f.start + uint64(f.size), Broken: true}
	rec, _ := t.recordAt(int(f.off))
	at, ok := t.cieOf(rec)
	if !ok {
		return result
	}
	c, ok := t.parseCIE(at)
	if !ok {
		return result
	}
	_, _, rest := t.parseFunction(rec, &c)
	result.ReturnReg, result.Signal = c.returnReg, c.signal
	m := machine{cie: &c, addr: t.addr, loc: f.start, dirty: true}
	if !m.execute(reader{data: c.instructions}) {
		return result
	}
	m.initial = m.now
	result.Broken = !m.execute(rest)
	m.flush()
	result.Rows = slices.Clip(m.rows)
	return result
}

// execute runs instructions to their end. False: one made no sense; the rows
// before it are good.
func (m *machine) execute(r reader) bool {
	for r.more() {
		if !m.instruction(&r) || r.bad || m.finished {
			return false
		}
	}
	return true
}

// advance closes the row of the code before the new location.
func (m *machine) advance(to uint64) {
	if to > m.loc {
		m.flush()
	}
	m.loc = to
}

func (m *machine) flush() {
	if !m.dirty {
		return
	}
	if len(m.rows) == maxFunctionRows {
		m.finished = true
		return
	}
	row := Row{Start: m.loc, CFA: m.now.cfa, SignedRAs: m.now.signed}
	if n := len(m.rows); n > 0 && m.sameRules(m.rows[n-1].Rules) {
		row.Rules = m.rows[n-1].Rules
	} else {
		row.Rules = m.collect()
	}
	m.rows = append(m.rows, row)
	m.dirty = false
}

func (m *machine) collect() []Rule {
	var rules []Rule
	for reg, rule := range m.now.rules {
		if rule.Op != Same {
			rule.Target = uint8(reg)
			rules = append(rules, rule)
		}
	}
	return slices.Clip(rules)
}

// sameRules compares without building a new list: most rows change the CFA
// only.
func (m *machine) sameRules(old []Rule) bool {
	i := 0
	for reg := range m.now.rules {
		now := &m.now.rules[reg]
		if now.Op == Same {
			continue
		}
		if i == len(old) || old[i].Target != uint8(reg) || old[i].Op != now.Op || old[i].N != now.N ||
			old[i].Source != now.Source || now.Expr != nil || old[i].Expr != nil {
			return false
		}
		i++
	}
	return i == len(old)
}
