package unwind

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/profiler/symbol"
)

// recording is one run of testdata/target.c on arm64, stopped at each
// instruction. See testdata/arm64/README.md.
type recording struct {
	Name string
	Maps []struct {
		Start, End, Offset uint64
		Image              string // "" for the kernel's signal trampoline
	}
	Code    procmem.Window // of the trampoline
	Samples []struct {
		Registers []uint64 // x0..x30, sp, pc
		Stack     []procmem.Window
		Truth     []uint64 // program counter and return addresses, leaf first
	}
}

func recordings(t testing.TB) (all []recording) {
	t.Helper()
	if err := json.Unmarshal(unpack(t, "recorded.json"), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func unpack(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open("testdata/arm64/" + name + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// unwinder opens the images of a recording as those of a process.
func (r *recording) unwinder(t testing.TB) *Unwinder {
	t.Helper()
	dir := t.TempDir()
	var maps procmem.Maps
	for _, m := range r.Maps {
		mapping := procmem.Mapping{Start: m.Start, End: m.End, Read: true, Exec: true}
		if m.Image != "" {
			path := filepath.Join(dir, m.Image)
			if err := os.WriteFile(path, unpack(t, m.Image), 0o600); err != nil {
				t.Fatal(err)
			}
			mapping, _ = placed(t, path, m.Start)
			mapping.End, mapping.Offset = m.End, m.Offset
		}
		maps = append(maps, mapping)
	}
	slices.SortFunc(maps, func(a, b procmem.Mapping) int { return int(a.Start>>12) - int(b.Start>>12) })
	u := New(symbol.NewCache(8), os.Getpid(), maps)
	if u.arch.Load() != &arm64 {
		t.Fatalf("%s: not taken for arm64", r.Name)
	}
	return u
}

// walked is what the unwinder makes of sample i.
func (r *recording) walked(u *Unwinder, i int) (pcs []uint64, frames []Frame, truncated string) {
	s := r.Samples[i]
	var regs stack.Registers
	for n, v := range s.Registers {
		regs.Set(n, v)
	}
	mem := procmem.Overlay{Windows: append(slices.Clone(s.Stack), r.Code), Under: nothing{}}
	frames, truncated = u.Unwind(regs, mem, nil)
	for _, f := range frames {
		pcs = append(pcs, f.PC)
	}
	return pcs, frames, truncated
}

// TestARM64Recorded unwinds each instruction of a real arm64 program, with
// rules and without: calls and returns, prologues and epilogues, leaves, alloca,
// qsort with a callback, PLT and lazy binding, signed return addresses, signal
// handlers also on a stack of their own.
func TestARM64Recorded(t *testing.T) {
	functions, methods, signed := map[string]bool{}, map[Method]bool{}, 0
	for _, r := range recordings(t) {
		u := r.unwinder(t)
		wrong := 0
		for i, s := range r.Samples {
			got, frames, truncated := r.walked(u, i)
			if truncated != "" || !slices.Equal(got, s.Truth) {
				if wrong++; wrong <= 5 {
					t.Errorf("%s: sample %d:%s, ended %q, want%s", r.Name, i, named(u, got), truncated, named(u, s.Truth))
				}
				continue
			}
			for _, f := range frames {
				functions[u.Name(f.Lookup())], methods[f.Found] = true, true
			}
			if s.Registers[arm64.link]&^arm64.addrMask != 0 {
				signed++
			}
		}
		if wrong > 0 || len(r.Samples) < 100 {
			t.Errorf("%s: %d of %d samples are wrong", r.Name, wrong, len(r.Samples))
		}
	}
	for _, name := range []string{
		"_start", "main", "outer", "middle", "saves", "leaf", "grows", "sorts", "order",
		"interrupted", "handler", "calls_never", "never",
	} {
		if !functions[name] {
			t.Errorf("no sample in %s", name)
		}
	}
	for _, m := range []Method{Rules, ReturnOnTop, FramePointer, Trampoline} {
		if !methods[m] {
			t.Errorf("no caller was found by %s", m)
		}
	}
	if signed < 100 {
		t.Errorf("%d samples have a signed return address in the link register", signed)
	}
}

func named(u *Unwinder, pcs []uint64) string {
	var b strings.Builder
	for _, pc := range pcs {
		fmt.Fprintf(&b, " %s (%#x)", u.Name(pc), pc)
	}
	return b.String()
}
