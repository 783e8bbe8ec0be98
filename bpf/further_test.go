package bpf

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deep has a frame of more than a KiB at each depth, and waits at the bottom.
//
//go:noinline
func deep(depth int, tid chan int, stop *atomic.Bool) uint64 {
	var words [128]uint64
	words[depth] = uint64(depth)
	if depth > 0 {
		return deep(depth-1, tid, stop) + words[depth]
	}
	tid <- unix.Gettid()
	for !stop.Load() {
	}
	return words[depth]
}

// What the first window does not hold of a stack is copied where the frame
// pointers lead.
func TestFurtherWindowsFollowFramePointers(t *testing.T) {
	const bottom = 30
	s := open(t)
	var stop atomic.Bool
	tid, done := make(chan int), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		deep(bottom, tid, &stop)
	}()
	id := <-tid
	t.Cleanup(func() { stop.Store(true); <-done })
	for _, switches := range []bool{false, true} {
		if err := s.Watch(Watch{PID: unix.Getpid(), TID: id, Full: true, Switches: switches, StackEnd: 1}); err != nil {
			t.Fatal(err)
		}
		samples := collect(t, s, 8)
		if n := chain(samples[len(samples)-1]); (n > bottom) != switches {
			t.Errorf("switches %v: %d frames of at least %d", switches, n, bottom+1)
		}
	}
}

// chain counts the frames whose frame pointer and return address were copied.
func chain(s Sample) (n int) {
	const rbp = 6
	for fp := s.Registers[rbp]; fp != 0; n++ {
		frame := slices.IndexFunc(append([]Window{s.Stack}, s.Further...), func(w Window) bool {
			return fp >= w.Addr && fp+16 <= w.Addr+uint64(len(w.Data))
		})
		if frame < 0 {
			break
		}
		w := append([]Window{s.Stack}, s.Further...)[frame]
		fp = binary.NativeEndian.Uint64(w.Data[fp-w.Addr:])
	}
	return n
}

// rawOf makes a record of the ring of a struct and the bytes behind it.
func rawOf[T any](head T, n int, data []byte) []byte {
	raw := append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&head)), n)...)
	return append(raw, data...)
}

func TestWindowsGoToTheirSample(t *testing.T) {
	var a assembler
	window := func(tid uint32, when, addr uint64, data string) {
		t.Helper()
		f := samplerFurther{Kind: uint32(samplerKindKIND_FURTHER), Tid: tid, When: when, Addr: addr, Len: uint64(len(data))}
		if _, whole, err := a.take(rawOf(f, furtherAt, []byte(data))); whole || err != nil {
			t.Fatalf("a window was taken for a sample: %v", err)
		}
	}
	window(7, 100, 0x1000, "of a sample that was lost")
	window(7, 200, 0x2000, "first")
	window(8, 200, 0x3000, "of another thread")
	window(7, 200, 0x4000, "second")
	for _, c := range []struct {
		tid  uint32
		when uint64
		want []Window
	}{
		{7, 200, []Window{{0x2000, []byte("first")}, {0x4000, []byte("second")}}},
		{7, 300, nil},
		{8, 400, nil}, // not the sample that its window came with
	} {
		s, whole, err := a.take(rawOf(samplerHeader{Tid: c.tid, When: c.when}, headerSize, nil))
		if err != nil || !whole {
			t.Fatal(err)
		}
		if !slices.EqualFunc(s.Further, c.want, func(a, b Window) bool { return a.Addr == b.Addr && string(a.Data) == string(b.Data) }) {
			t.Errorf("sample of thread %d at %d has %v, want %v", c.tid, c.when, s.Further, c.want)
		}
	}
}

// A ring that nobody reads loses samples, and tells of which thread.
func TestLossesByThread(t *testing.T) {
	s := open(t)
	busy, other := spin(t), spin(t)
	if err := s.Watch(Watch{PID: other, TID: other}); err != nil {
		t.Fatal(err)
	}
	w := Watch{PID: busy, TID: busy, Full: true}
	if err := s.Watch(w); err != nil {
		t.Fatal(err)
	}
	if err := s.Burst(w, 9000); err != nil {
		t.Fatal(err)
	}
	lost := func(tid int) uint64 {
		n, err := s.Lost(tid)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for lost(busy) < 10 {
		if err := s.Watch(w); err != nil { // what was counted stays
			t.Fatal(err)
		}
	}
	if err := s.Unwatch(busy); err != nil {
		t.Fatal(err)
	}
	c, err := s.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if of := lost(other); c.LostRing < 10+of {
		t.Errorf("%d lost in all, %d of the other thread", c.LostRing, of)
	}
	if n := lost(busy); n != 0 {
		t.Errorf("%d losses of a thread that is not watched", n)
	}
}
