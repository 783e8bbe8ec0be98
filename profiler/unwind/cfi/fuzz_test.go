package cfi

import (
	"debug/elf"
	"testing"
)

// handmade is a CIE and an FDE with most instructions.
var handmade = []byte{
	0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
	0x2c, 0, 0, 0, 0x1c, 0, 0, 0, 0, 1, 0, 0, 0x40, 0, 0, 0, 0,
	0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x02, 5, 0x0b, 0x0f, 2, 0x77, 8, 0x10, 3, 1, 0x06,
	0x16, 12, 2, 0x77, 8, 0x41, 0xc6, 0x2e, 16, 0, 0,
}

// evaluate runs an expression and checks that it ends.
func evaluate(t *testing.T, expr []byte) {
	f := &countedFrame{}
	_, _ = Evaluate(expr, 0x7000, f)
	if f.loads > maxSteps {
		t.Fatalf("%d loads", f.loads)
	}
}

// countedFrame counts what an expression reads.
type countedFrame struct {
	fakeFrame
	loads int
}

func (f *countedFrame) Load(addr uint64, size int) (uint64, error) {
	f.loads++
	return f.fakeFrame.Load(addr, size)
}

// FuzzTable parses hostile tables and asks for every rule.
func FuzzTable(f *testing.F) {
	f.Add(handmade, false)
	f.Add(handmade, true)
	if file, err := elf.Open("/lib/x86_64-linux-gnu/libgcc_s.so.1"); err == nil {
		if data, err := file.Section(".eh_frame").Data(); err == nil {
			f.Add(data[:min(len(data), 2048)], false)
		}
		_ = file.Close()
	}
	f.Fuzz(func(t *testing.T, data []byte, debug bool) {
		evaluate(t, data) // the same bytes as an expression
		form := EHFrame
		if debug {
			form = DebugFrame
		}
		table, err := Parse(data, 0x1000, form)
		if err != nil {
			return
		}
		for i := range min(table.Len(), 64) {
			start, end := table.Range(i)
			for _, pc := range []uint64{start, start + (end-start)/2, end - 1} {
				function, ok := table.Function(pc)
				if !ok {
					continue
				}
				row, ok := function.Row(pc)
				if !ok {
					continue
				}
				for _, rule := range append([]Rule{row.CFA}, row.Rules...) {
					if rule.Expr != nil {
						evaluate(t, rule.Expr)
					}
				}
			}
		}
		if table.rows > maxRows {
			t.Errorf("%d rows kept", table.rows)
		}
	})
}

// FuzzExpression runs hostile expressions.
func FuzzExpression(f *testing.F) {
	f.Add([]byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22})
	f.Add([]byte{0x31, 0x28, 1, 0, 0x00, 0x35})
	f.Fuzz(func(t *testing.T, expr []byte) {
		evaluate(t, expr)
	})
}

// TestHandmade reads the rules of the seed, so that the fuzzer starts from
// something that works.
func TestHandmade(t *testing.T) {
	table, err := Parse(handmade, 0x1000, EHFrame)
	if err != nil {
		t.Fatal(err)
	}
	start, _ := table.Range(0)
	function, _ := table.Function(start)
	if function.Broken || len(function.Rows) != 5 {
		t.Fatalf("%d rows, broken: %v", len(function.Rows), function.Broken)
	}
	if row, _ := function.Row(start + 4); describeCFA(row.CFA) != "rbp+16" || describe(row.Rule(6)) != "c-16" {
		t.Errorf("row at +4: %+v", row)
	}
}
