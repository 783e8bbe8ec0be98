package bpf

import "testing"

func TestRingSize(t *testing.T) {
	for cpus, want := range map[int]uint32{1: 8 << 20, 2: 8 << 20, 5: 8 << 20, 16: 16 << 20, 33: 32 << 20, 4096: 32 << 20} {
		if got := ringSize(cpus); got != want {
			t.Errorf("%d CPUs: ring of %d bytes, want %d", cpus, got, want)
		}
	}
}
