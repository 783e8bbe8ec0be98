package balancer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// A worker tells what a version changed before it builds the picker: here one
// that never comes back from being built.
func TestChangeIsToldByAHangingWorker(t *testing.T) {
	p := startProxy(t, proxyOptions{init: `
		spinguard.wrap("backend", function(peers)
			while type(peers[2].weight) == "string" do end
			return { find = function() return peers[1].address end }
		end, { raw = true })`})
	p.publish(5, 3)
	p.served(4)
	p.publish(5, "0")
	worker := p.workers()[0]
	go func() { _, _ = p.client.Get(fmt.Sprintf("http://127.0.0.1:%d/", p.port)) }()
	proc, err := procmem.Open(worker)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = proc.Close() }()
	maps, err := procmem.ReadMaps(worker)
	if err != nil {
		t.Fatal(err)
	}
	files := FindFiles(maps, proc, worker)
	slot, err := SlotAddress(proc, files.Crumbs, NamespacePID(worker))
	if err != nil {
		t.Fatal(err)
	}
	var c Change
	eventually(t, "the change", func() bool { c, err = files.ReadChange(proc, slot, "backend", 2); return err == nil })
	want := fmt.Sprintf(`%s weight 3 -> "0"`, p.peer(1))
	if c.From != 1 || c.To != 2 || c.By != "admin 127.0.0.1" || len(c.Lines) != 1 || c.Lines[0] != want {
		t.Errorf("%+v, want %s", c, want)
	}
	if age := time.Since(c.At); age < -2*time.Second || age > time.Hour {
		t.Errorf("published at %v", c.At)
	}
	eventually(t, "a crumb with the same digest", func() bool {
		crumb, err := ReadCrumb(proc, slot, NamespacePID(worker))
		return err == nil && crumb.Digest == c.Digest
	})
	if c, err := files.ReadChange(proc, slot, "backend", 1); err != nil || c.From != 0 || len(c.Lines) != 2 {
		t.Errorf("the first version: %+v, %v", c, err)
	}
	if _, err := files.ReadChange(proc, slot, "backend", 3); !errors.Is(err, ErrNoChange) {
		t.Errorf("a version that never was: %v", err)
	}
	if _, err := (Files{}).ReadChange(proc, slot, "backend", 2); !errors.Is(err, ErrNoChange) {
		t.Errorf("no changes are mapped: %v", err)
	}
}

func changeBytes(size uint32, text string) []byte {
	b := make([]byte, changeSlot)
	binary.LittleEndian.PutUint32(b[changeSizeAt:], size)
	binary.LittleEndian.PutUint64(b[changeVersionAt:], 2)
	copy(b[changeDigestAt:], "0123456789abcdef")
	copy(b[changeUpstreamAt:], "backend")
	copy(b[changeTextAt:], text)
	return b
}

func FuzzParseChange(f *testing.F) {
	f.Add(changeBytes(5, "a\nb\nc"))
	f.Add(changeBytes(0, ""))
	f.Add(changeBytes(changeText, strings.Repeat("\x1b\xff", changeText/2)))
	f.Add(changeBytes(1<<32-1, "x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != changeSlot {
			return
		}
		c, ok := parseChange(b)
		if !ok {
			return
		}
		for _, s := range append(c.Lines, c.Upstream, c.By, c.Digest) {
			if strings.ContainsFunc(s, unicode.IsControl) {
				t.Errorf("%q can't be printed", s)
			}
		}
		if y := c.At.UTC().Year(); y < 1970 || y > 9999 || len(c.Lines) == 0 {
			t.Errorf("%+v", c)
		}
	})
}
