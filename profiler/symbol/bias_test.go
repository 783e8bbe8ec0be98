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
