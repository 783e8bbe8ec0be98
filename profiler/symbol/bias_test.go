package symbol

import "testing"

// TestLayouts runs programs of every layout and compares the addresses that
// they print with those computed from files and mappings.
func TestLayouts(t *testing.T) {
	layouts := []struct {
		name  string
		flags []string
	}{
		{"pie", nil},
		{"fixed address", []string{"-no-pie"}},
		{"static", []string{"-static"}},
		{"static pie", []string{"-static-pie"}},
		{"one segment for code and data", []string{"-Wl,-z,noseparate-code"}},
		{"large pages", []string{"-Wl,-z,max-page-size=0x200000"}},
		{"prelinked pie", []string{"-Wl,-Ttext-segment=0x40000000"}},
		{"text far from the first segment", []string{"-no-pie", "-Wl,-Ttext=0x1000000"}},
		{"text that begins within a page", []string{"-no-pie", "-Wl,-z,noseparate-code", "-Wl,-Ttext=0x1000130"}},
		{"gold", []string{"-fuse-ld=gold"}},
		{"no relro", []string{"-Wl,-z,norelro"}},
		{"no build id", []string{"-Wl,--build-id=none"}},
		{"stripped", []string{"-s"}},
	}
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			if l.name == "gold" {
				need(t, "gold")
			}
			start(t, build(t, l.flags...)).check(t)
		})
	}
}

// TestSplitMapping finds what lies in the middle of a segment whose pages have
// mappings of their own.
func TestSplitMapping(t *testing.T) {
	p := start(t, build(t), "split")
	if m, ok := p.maps.Find(p.function); !ok || m.Start != p.function || m.End-m.Start != page {
		t.Fatalf("mapping %+v", m)
	}
	p.check(t)
}
