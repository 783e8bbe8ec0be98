package balancer

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/spinguard/spinguard/profiler/procmem"
)

func slotBytes(pid, phase uint32, upstream string) []byte {
	b := make([]byte, CrumbSize)
	binary.LittleEndian.PutUint32(b[slotPIDAt:], pid)
	binary.LittleEndian.PutUint32(b[slotPhaseAt:], phase)
	binary.LittleEndian.PutUint32(b[slotSequenceAt:], 7)
	binary.LittleEndian.PutUint64(b[slotVersionAt:], 2)
	copy(b[slotDigestAt:], "0123456789abcdef")
	copy(b[slotUpstreamAt:], upstream)
	copy(b[slotPickerAt:], "rotation")
	return b
}

func TestParseCrumb(t *testing.T) {
	c, err := ParseCrumb(slotBytes(12, 2, "backend"))
	want := Crumb{
		PID: 12, Active: true, Phase: PhasePick, Sequence: 7, Upstream: "backend", Version: 2,
		Digest: "0123456789abcdef", Picker: "rotation",
	}
	if err != nil || c != want {
		t.Errorf("%+v, %v", c, err)
	}
	for name, b := range map[string][]byte{
		"short":       slotBytes(12, 2, "backend")[:127],
		"no pid":      slotBytes(0, 2, "backend"),
		"pid":         slotBytes(1<<31+5, 2, "backend"),
		"phase":       slotBytes(12, 3, "backend"),
		"no name":     slotBytes(12, 1, ""),
		"bad name":    slotBytes(12, 1, "<script>"),
		"name's size": slotBytes(12, 1, strings.Repeat("x", 64)),
	} {
		if c, err := ParseCrumb(b); !errors.Is(err, ErrCrumb) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestSlotAddress(t *testing.T) {
	all := make([]byte, crumbsSize)
	copy(all[crumbHeader+CrumbSize*3:], slotBytes(12, 0, ""))
	copy(all[crumbHeader+CrumbSize*4:], slotBytes(13, 0, ""))
	copy(all[crumbHeader+CrumbSize*5:], slotBytes(13, 0, ""))
	mem := procmem.Window{Addr: 0x1000, Data: all}
	m := procmem.Mapping{Start: 0x1000, End: 0x9000}
	if addr, err := SlotAddress(mem, m, 12); err != nil || addr != 0x1000+crumbHeader+CrumbSize*3 {
		t.Errorf("%#x, %v", addr, err)
	}
	if _, err := SlotAddress(mem, m, 14); !errors.Is(err, ErrNoCrumbs) {
		t.Errorf("a worker without a slot: %v", err)
	}
	if _, err := SlotAddress(mem, m, 13); err == nil || !strings.Contains(err.Error(), "two slots") {
		t.Errorf("two slots: %v", err)
	}
	if _, err := SlotAddress(mem, procmem.Mapping{}, 12); !errors.Is(err, ErrNoCrumbs) {
		t.Errorf("no crumbs: %v", err)
	}
}

func FuzzParseCrumb(f *testing.F) {
	f.Add(slotBytes(12, 2, "backend"))
	f.Add(slotBytes(12, 0, "\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCrumb(b)
		if err != nil {
			return
		}
		for _, s := range []string{c.Upstream, c.Digest, c.Picker, c.Phase} {
			if strings.ContainsFunc(s, unicode.IsControl) || len(s) > 4*64 {
				t.Errorf("%q can't be printed", s)
			}
		}
	})
}
