package proxy

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

var update = flag.Bool("update", false, "record testdata anew")

// requestMemory is what a search for the request reads, recorded from a stuck
// worker of Debian's nginx.
type requestMemory struct {
	Live      procmem.Window
	Registers []uint64
	Windows   []procmem.Window // what else was read, in the order of it
	patches   map[uint64]uint64
	reads     int
}

const requestRecording = "testdata/request.gob.gz"

// ReadMemory gives what was recorded, later readings first, with the patches.
func (m *requestMemory) ReadMemory(addr uint64, buf []byte) error {
	m.reads++
	for _, w := range append(slices.Clone(m.Windows), m.Live) {
		if w.ReadMemory(addr, buf) != nil {
			continue
		}
		for i := range buf {
			at := addr + uint64(i)
			if word, ok := m.patches[at&^7]; ok {
				buf[i] = byte(word >> (8 * (at & 7)))
			}
		}
		return nil
	}
	return errors.New("not recorded")
}

// find searches as the agent does.
func (m *requestMemory) find() (Request, bool) {
	live := procmem.Window{Addr: m.Live.Addr, Data: make([]byte, len(m.Live.Data))}
	_ = m.ReadMemory(live.Addr, live.Data)
	m.reads = 0
	return FindRequest(m, live, 0, m.Registers...)
}

// patch replaces words: each is 12 bytes, the window, the offset in it, the
// word. A word that begins with 0xffff is made an address of a window.
func (m *requestMemory) patch(data []byte) {
	const most = 64
	windows := append(slices.Clone(m.Windows), m.Live)
	m.patches = map[uint64]uint64{}
	le := binary.LittleEndian
	for ; len(data) >= 12 && len(m.patches) < most; data = data[12:] {
		w, word := windows[int(le.Uint16(data))%len(windows)], le.Uint64(data[4:])
		if word>>48 == 0xffff {
			word = windows[int(word&0xffff)%len(windows)].Addr + word>>16&0xffff
		}
		m.patches[(w.Addr+uint64(le.Uint16(data[2:]))%uint64(len(w.Data)))&^7] = word
	}
}

func loadRequest(t testing.TB) *requestMemory {
	t.Helper()
	f, err := os.Open(requestRecording)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	m := &requestMemory{}
	if err := gob.NewDecoder(z).Decode(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// readRecorder notes what is read.
type readRecorder struct {
	under procmem.Memory
	m     *requestMemory
}

func (r readRecorder) ReadMemory(addr uint64, buf []byte) error {
	err := r.under.ReadMemory(addr, buf)
	if err == nil {
		r.m.Windows = append(r.m.Windows, procmem.Window{Addr: addr, Data: bytes.Clone(buf)})
	}
	return err
}

// recordRequest takes the memory of a worker that hangs while it passes an
// answer on, so that there is an upstream too.
func recordRequest(t *testing.T) {
	s, w := startLooper(t, "")
	hang(t, s, "GET /answered?good=1&token=secret HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
	findStuck(t, w)
	process, err := procmem.Open(w.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = process.Close() }()
	m := &requestMemory{}
	m.Live, m.Registers = liveStack(t, w)
	if _, ok := FindRequest(readRecorder{process, m}, m.Live, 0, m.Registers...); !ok {
		t.Fatal("no request")
	}
	slices.SortStableFunc(m.Windows, func(a, b procmem.Window) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(len(b.Data), len(a.Data)))
	})
	m.Windows = slices.CompactFunc(m.Windows, func(a, b procmem.Window) bool {
		return b.Addr >= a.Addr && b.Addr+uint64(len(b.Data)) <= a.Addr+uint64(len(a.Data))
	})
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err := errors.Join(gob.NewEncoder(z).Encode(m), z.Close(), os.WriteFile(requestRecording, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// TestRecordedRequest finds the request in a recorded memory: no nginx is needed.
func TestRecordedRequest(t *testing.T) {
	if *update {
		recordRequest(t)
	}
	m := loadRequest(t)
	r, ok := m.find()
	if !ok || r.Line(false) != "GET /answered?*** HTTP/1.1" || r.Host != "shop.example.com" || r.Upstream.Name != "backend" {
		t.Errorf("found %v: %+v", ok, r)
	}
	m.patch(append([]byte{0xff, 0xff, 0, 0}, make([]byte, 8)...))
	if len(m.patches) != 1 {
		t.Errorf("%d patches", len(m.patches))
	}
}
