package bpf

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// turner is a thread of this process that turns like the loop of a worker: its
// word moves between any two samples, until it is told to stand still.
type turner struct {
	tid         int
	word        uint64
	stand, stop atomic.Bool
}

func turnHere(t *testing.T) *turner {
	t.Helper()
	var w turner
	tid, done := make(chan int), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		tid <- unix.Gettid()
		for !w.stop.Load() {
			if !w.stand.Load() {
				atomic.AddUint64(&w.word, 1)
			}
		}
	}()
	t.Cleanup(func() { w.stop.Store(true); <-done })
	w.tid = <-tid
	return &w
}

// readAll counts the samples that Read returns, until the sampler is closed.
func readAll(t *testing.T, s *Sampler) (read *atomic.Uint64) {
	read = new(atomic.Uint64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := s.Read(never()); err != nil {
				return
			}
			read.Add(1)
		}
	}()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return read
}

func taken(t *testing.T, s *Sampler) uint64 {
	t.Helper()
	c, err := s.Counters()
	if err != nil {
		t.Fatal(err)
	}
	return c.Taken
}

func TestNobodyIsWokenForAPatientWorkerThatTurns(t *testing.T) {
	const waiting, most = 25, 500
	for _, x := range []struct {
		name    string
		patient bool
	}{{"patient", true}, {"all at once", false}} {
		t.Run(x.name, func(t *testing.T) {
			s, w := open(t), turnHere(t)
			if err := s.Watch(Watch{PID: os.Getpid(), TID: w.tid, ProgressAddr: addressOf(&w.word), ProgressSize: 8, Full: true, Patient: x.patient}); err != nil {
				t.Fatal(err)
			}
			read := readAll(t, s)
			if !x.patient {
				eventually(t, "samples are read as they come", func() bool { return read.Load() >= 2*waiting })
				return
			}
			eventually(t, "samples wait in the ring", func() bool {
				n := taken(t, s)
				if n > most {
					t.Fatalf("of %d samples %d were read: they end a Read that waits", n, read.Load())
				}
				return n-read.Load() >= waiting
			})
			w.stand.Store(true)
			before := taken(t, s)
			eventually(t, "a sample that stands still ends the Read", func() bool { return read.Load() >= before })
		})
	}
}

// eventually waits for a condition, as long as no machine takes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
