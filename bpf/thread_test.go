package bpf

import (
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// spinHere keeps one thread of this process busy until the test ends and
// returns its id.
func spinHere(t *testing.T) int {
	t.Helper()
	var stop atomic.Bool
	tid := make(chan int)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		tid <- unix.Gettid()
		for !stop.Load() {
		}
	}()
	t.Cleanup(func() { stop.Store(true); <-done })
	return <-tid
}

func addressOf(word *uint64) uint64 { return uint64(uintptr(unsafe.Pointer(word))) }
