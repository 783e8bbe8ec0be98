package watchdog

import (
	"testing"

	"github.com/spinguard/spinguard/profiler/stack"
)

// memory holds Lua tables by address.
type memory map[uint64][]stack.Value

func (m memory) Table(addr uint64, limit int) []stack.Value {
	return m[addr][:min(limit, len(m[addr]))]
}

func number(name, text string) stack.Value {
	return stack.Value{Name: name, Type: "number", Text: text}
}

func text(name, s string) stack.Value {
	return stack.Value{Name: name, Type: "string", Text: `"` + s + `"`}
}

func ref(name string, addr uint64) stack.Value {
	return stack.Value{Name: name, Type: "table", Text: "table(2)", Addr: addr}
}

func frame(values ...stack.Value) stack.Frame {
	return stack.Frame{Kind: stack.Lua, Function: "f", Values: values}
}

func TestBadPeer(t *testing.T) {
	m := memory{
		1: {ref("1", 2), ref("2", 3)},
		2: {text("host", "10.0.0.1"), number("port", "80"), number("weight", "5")},
		3: {text("host", "10.0.0.2"), number("port", "81"), text("weight", "0")},
		4: {text("address", "10.0.0.3:82"), number("weight", "-1")},
		5: {ref("peers", 6)},
		6: {ref("1", 2), ref("2", 4)},
		7: {ref("1", 7), ref("2", 8)}, // points to itself
		8: {text("title", "no peer"), number("weight", "nan")},
	}
	tests := []struct {
		name         string
		stack        stack.Stack
		peer, weight string
	}{
		{"the list's string", stack.Stack{Frames: []stack.Frame{frame(number("a", "nan")), frame(ref("peers", 1))}}, "10.0.0.2:81", `"0"`},
		{"the loop's own peer", stack.Stack{Frames: []stack.Frame{frame(ref("p", 4)), frame(ref("peers", 1))}}, "10.0.0.3:82", "-1"},
		{"below a field", stack.Stack{Frames: []stack.Frame{frame(ref("up", 5))}}, "10.0.0.3:82", "-1"},
		{"good peers only", stack.Stack{Frames: []stack.Frame{frame(ref("p", 2))}}, "", ""},
		{"a circle without peers", stack.Stack{Frames: []stack.Frame{frame(ref("x", 7))}}, "", ""},
	}
	for _, test := range tests {
		peer, weight := badPeer(test.stack, m)
		if peer != test.peer || weight != test.weight {
			t.Errorf("%s: peer %q with weight %q, want %q with %q", test.name, peer, weight, test.peer, test.weight)
		}
	}
}
