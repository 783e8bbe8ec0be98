package cfi

import (
	"errors"
	"strings"
	"testing"
)

// fakeFrame has register n = n*100 and memory whose word at a is a+1.
type fakeFrame struct{}

func (fakeFrame) Register(n int) (uint64, bool) { return uint64(n) * 100, n < 17 }
func (fakeFrame) Bias() uint64                  { return 0x1000 }
func (fakeFrame) Load(addr uint64, size int) (uint64, error) {
	if addr > 1<<40 || size > 8 {
		return 0, errors.New("no memory there")
	}
	return addr + 1, nil
}

func TestExpression(t *testing.T) {
	tests := []struct {
		name string
		expr []byte
		want uint64
		err  string
	}{
		{"PLT of x86-64", []byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 708, ""},
		{"saved at the CFA", []byte{0x06}, 8, ""},
		{"register with offset", []byte{0x76, 0x78, 0x06}, 593, ""},
		{"address of the image", []byte{0x03, 1, 0, 0, 0, 0, 0, 0, 0}, 0x1001, ""},
		{"arithmetic", []byte{0x35, 0x33, 0x1e, 0x32, 0x1b, 0x20, 0x1f}, 8, ""},
		{"signed constants", []byte{0x09, 0xff, 0x0b, 0xfe, 0xff, 0x22, 0x19}, 3, ""},
		{"stack order", []byte{0x31, 0x32, 0x33, 0x17, 0x1c, 0x22}, 2, ""},
		{"taken branch", []byte{0x31, 0x28, 1, 0, 0x00, 0x35}, 5, ""},
		{"endless loop", []byte{0x2f, 0xfd, 0xff}, 0, "steps"},
		{"division by zero", []byte{0x31, 0x30, 0x1b}, 0, "division"},
		{"underflow", []byte{0x13, 0x13}, 0, "underflow"},
		{"overflow", []byte{0x12, 0x2f, 0xfc, 0xff}, 0, "overflow"},
		{"jump out", []byte{0x2f, 0xff, 0x7f}, 0, "jump"},
		{"cut", []byte{0x03, 1}, 0, "cut"},
		{"unknown register", []byte{0x92, 20, 0}, 0, "register 20"},
		{"unknown operation", []byte{0xff}, 0, "operation"},
		{"bad memory", []byte{0x0e, 0, 0, 0, 0, 0, 0, 0, 0xff, 0x06}, 0, "no memory"},
	}
	for _, test := range tests {
		got, err := Evaluate(test.expr, 7, fakeFrame{})
		switch {
		case test.err == "" && (err != nil || got != test.want):
			t.Errorf("%s: %d %v, want %d", test.name, got, err, test.want)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%s: %v, want an error about %q", test.name, err, test.err)
		}
	}
}
