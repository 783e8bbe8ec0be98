package unwind

import (
	"slices"
	"testing"
)

// TestMusl walks programs of musl, as in Alpine's images: libc has no rules and
// no frame pointers, from its leaves up to its way to main.
func TestMusl(t *testing.T) {
	for _, flag := range []string{"-static", "-pie"} {
		t.Run(flag, func(t *testing.T) {
			path := buildWith(t, "musl-gcc", "-O2", "-fomit-frame-pointer", flag)
			x := start(t, path, "sleep")
			x.cont()
			frames, truncated := x.unwind.Unwind(x.sleeping(), x.process, nil)
			names := x.names(frames)
			i := slices.Index(names, "sleeps")
			if truncated != "" || i < 1 || !slices.Equal(names[i:i+2], []string{"sleeps", "main"}) {
				t.Errorf("asleep: %v %q", names, truncated)
			}
			everyInstruction(t, start(t, path), 2500)
		})
	}
}

// TestMuslWithFramePointers wants no stack that claims to be whole and leaves
// out the functions in the middle, of which only frame pointers tell.
func TestMuslWithFramePointers(t *testing.T) {
	x := start(t, buildWith(t, "musl-gcc", "-O2", "-fno-omit-frame-pointer"), "sleep")
	x.cont()
	frames, truncated := x.unwind.Unwind(x.sleeping(), x.process, nil)
	if names := x.names(frames); truncated == "" && !slices.Contains(names, "main") {
		t.Errorf("asleep: %v", names)
	}
}
