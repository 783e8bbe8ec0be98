package unwind

import (
	"slices"
	"strings"
	"testing"
)

// variants are the ways in which programs are built.
var variants = []struct {
	name  string
	flags []string
}{
	{"no frame pointer", []string{"-O2", "-fomit-frame-pointer"}},
	{"frame pointer without rules", []string{"-O0", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables"}},
	{"static", []string{"-O2", "-fomit-frame-pointer", "-static"}},
	{"static pie", []string{"-O2", "-fomit-frame-pointer", "-static-pie"}},
	{"fixed address", []string{"-O2", "-fomit-frame-pointer", "-no-pie"}},
	{"shrink wrapped", []string{"-O3", "-fshrink-wrap", "-fcf-protection=full"}},
	{"unoptimised", []string{"-O0"}},
	{"names bound late", []string{"-O2", "-Wl,-z,lazy", "-fcf-protection=none"}},
	{"prelinked", []string{"-O2", "-Wl,-Ttext-segment=0x40000000"}},
	{"code in the first segment", []string{"-O2", "-no-pie", "-Wl,-z,noseparate-code"}},
	{"code far from the first segment", []string{"-O2", "-no-pie", "-Wl,-Ttext=0x1000000"}},
}

// TestEveryInstruction single-steps through calls, prologues, epilogues,
// alloca, the PLT and libc: at each instruction the walk must reach the entry
// through main.
func TestEveryInstruction(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			everyInstruction(t, start(t, build(t, v.flags...)), 6000)
		})
	}
}

// everyInstruction steps through outer, which main calls.
func everyInstruction(t *testing.T, x *target, steps int) {
	t.Helper()
	x.reach("outer", "")
	bad := map[string]int{}
	whole := 0
	for range steps {
		x.step()
		frames, truncated := x.unwind.Unwind(x.registers(), x.process, nil)
		names := x.names(frames)
		i := slices.Index(names, "main")
		if truncated == "" && i > 0 && names[i-1] == "outer" {
			whole++
		} else {
			bad[truncated+" "+strings.Join(names, " < ")]++
		}
	}
	t.Logf("%d of %d whole", whole, steps)
	report(t, bad)
}

// TestVDSO walks out of the code that the kernel maps into each process.
func TestVDSO(t *testing.T) {
	x := start(t, build(t, "-O2"), "clock")
	x.reach("clocks", "")
	bad, inside := map[string]int{}, 0
	for range 2000 {
		x.step()
		frames, truncated := x.unwind.Unwind(x.registers(), x.process, nil)
		names := x.names(frames)
		i := slices.Index(names, "main")
		if truncated != "" || i < 1 || names[i-1] != "clocks" {
			bad[truncated+" "+strings.Join(names, " < ")]++
		}
		if p, ok := x.unwind.Locate(frames[0].PC); ok && p.Mapping.Path == "[vdso]" {
			inside++
		}
	}
	report(t, bad)
	if inside < 100 {
		t.Errorf("%d of 2000 steps inside of the vDSO", inside)
	}
}

func report(t *testing.T, bad map[string]int) {
	t.Helper()
	shown := 0
	for text, n := range bad {
		if shown++; shown <= 10 {
			t.Errorf("%d times: %s", n, text)
		}
	}
}

// TestStates walks stacks that a plain loop does not have.
func TestStates(t *testing.T) {
	tail := []string{"main", "__libc_start_call_main", "__libc_start_main", "_start"}
	tests := []struct {
		mode string
		want []string
	}{
		{"signal", []string{"handler", "<signal>", "kill", "interrupted"}},
		{"altstack", []string{"handler", "<signal>", "kill", "interrupted"}},
		{"noreturn", []string{"never", "calls_never"}},
	}
	for _, test := range tests {
		for _, flag := range []string{"-O2", "-O0"} {
			t.Run(test.mode+flag, func(t *testing.T) {
				x := start(t, build(t, flag), test.mode)
				x.reach(test.want[0], "leaf")
				for range 200 {
					x.step()
					frames, truncated := x.unwind.Unwind(x.registers(), x.process, nil)
					got := x.names(frames)
					for i := range frames {
						if frames[i].Signal {
							got[i] = "<signal>"
						}
					}
					got = slices.DeleteFunc(got, func(s string) bool { return s == "leaf" })
					if want := slices.Concat(test.want, tail); truncated != "" || !slices.Equal(got, want) {
						t.Fatalf("got %v %q, want %v", got, truncated, want)
					}
				}
			})
		}
	}
}

// TestAsleep walks a thread in a system call from two registers, which is all
// that /proc gives of it.
func TestAsleep(t *testing.T) {
	for _, flag := range []string{"-O2", "-O0", "-static"} {
		x := start(t, build(t, flag), "sleep")
		x.cont()
		regs := x.sleeping()
		frames, truncated := x.unwind.Unwind(regs, x.process, nil)
		got := strings.Join(x.names(frames), " ")
		if truncated != "" || !strings.HasPrefix(got, "pause sleeps main ") || !strings.HasSuffix(got, " _start") {
			t.Errorf("%s: got %s %q", flag, got, truncated)
		}
	}
}

// TestStripped wants the range's start as name: the same at every address of a
// function, and never the nearest symbol.
func TestStripped(t *testing.T) {
	x := start(t, build(t, "-O2", "-s"), "noreturn")
	seen := map[string]bool{}
	for range 50 {
		x.step()
		frames, truncated := x.unwind.Unwind(x.registers(), x.process, nil)
		if truncated != "" {
			t.Fatal(truncated)
		}
		for _, name := range x.names(frames) {
			seen[name] = true
		}
	}
	own := 0
	for name := range seen {
		if strings.HasPrefix(name, "target+0x") {
			own++
		}
	}
	if own != 5 { // leaf, never, calls_never, main, _start
		t.Errorf("%d names for 5 functions: %v", own, seen)
	}
}

// TestKnownRegisters wants callers to have only the registers that calls keep,
// with the values that the callee saved, and nothing guessed where the leaf's
// registers are not known.
func TestKnownRegisters(t *testing.T) {
	x := start(t, build(t, "-O2"))
	x.reach("outer", "leaf")
	regs := x.registers()
	frames, truncated := x.unwind.Unwind(regs, x.process, nil)
	if truncated != "" {
		t.Fatal(truncated)
	}
	if got := frames[1].Registers.Known; got != amd64.kept {
		t.Errorf("registers %#x are known in the caller, want %#x", got, amd64.kept)
	}
	for i := 1; i < len(frames); i++ {
		if frames[i].Registers.SP() != frames[i-1].CFA || frames[i].Registers.PC() != frames[i].PC {
			t.Errorf("frame %d: stack pointer %#x below a CFA of %#x", i, frames[i].Registers.SP(), frames[i-1].CFA)
		}
	}
	regs.Known = bits(amd64.pc, amd64.sp)
	frames, truncated = x.unwind.Unwind(regs, x.process, nil)
	if truncated != "" || frames[1].Registers.Known != regs.Known {
		t.Errorf("from two registers: %#x are known in the caller: %q", frames[1].Registers.Known, truncated)
	}
	regs.Known = 0
	if frames, truncated = x.unwind.Unwind(regs, x.process, nil); len(frames) != 0 || truncated == "" {
		t.Errorf("from nothing: %d frames, %q", len(frames), truncated)
	}
}

// TestCutWindow wants a stack that goes on beyond the copied window to say so,
// with the number of the frame.
func TestCutWindow(t *testing.T) {
	x := start(t, build(t, "-O2"))
	x.reach("outer", "order")
	regs := x.registers()
	window := x.window(regs)
	whole, truncated := x.unwind.Unwind(regs, window, nil)
	if truncated != "" {
		t.Fatal(truncated)
	}
	cut := whole[2].CFA - regs.SP() - 8
	window.Data = window.Data[:cut]
	frames, truncated := x.unwind.Unwind(regs, window, nil)
	if len(frames) != 3 || !strings.HasPrefix(truncated, "frame 2: ") || !strings.Contains(truncated, "cut window") {
		t.Errorf("%d frames, %q", len(frames), truncated)
	}
}
