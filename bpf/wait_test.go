package bpf

import (
	"errors"
	"os"
	"sync"
	"testing"
	"time"
)

// waitOn makes a waiter of a pipe, and what puts something into it.
func waitOn(t *testing.T) (w *waiter, fill func()) {
	t.Helper()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = from.Close(), to.Close() })
	if w, err = newWaiter(int(from.Fd())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.close() })
	return w, func() {
		if _, err := to.WriteString("x"); err != nil {
			t.Error(err)
		}
	}
}

func something() bool { return true }

// never is a deadline that no test lives to see.
func never() time.Time { return time.Now().Add(time.Hour) }

func TestWaitEnds(t *testing.T) {
	w, fill := waitOn(t)
	for _, x := range []struct {
		name     string
		before   func()
		during   func()
		ready    func() bool
		deadline time.Time
		want     error
	}{
		{name: "something was there before", ready: something, deadline: never()},
		{name: "woken before", before: w.wake, deadline: never(), want: os.ErrDeadlineExceeded},
		{name: "woken meanwhile", during: w.wake, deadline: never(), want: os.ErrDeadlineExceeded},
		{name: "woken before and meanwhile", before: w.wake, during: w.wake, deadline: never(), want: os.ErrDeadlineExceeded},
		{name: "deadline", deadline: time.Now().Add(50 * time.Millisecond), want: os.ErrDeadlineExceeded},
		{name: "deadline long ago", deadline: longAgo, want: os.ErrDeadlineExceeded},
		{name: "something comes", during: fill, deadline: never()},
	} {
		if x.before != nil {
			x.before()
		}
		var beside sync.WaitGroup
		ready := x.ready
		if ready == nil {
			ready = func() bool {
				if x.during != nil {
					beside.Go(x.during) // from now on the descriptor tells
				}
				return false
			}
		}
		if err := w.wait(x.deadline, ready); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.name, err, x.want)
		}
		if x.want != nil && x.before == nil && x.during == nil && time.Now().Before(x.deadline) {
			t.Errorf("%s: too early", x.name)
		}
		beside.Wait()
		w.woken.Store(false) // it may have come too late for that wait
	}
}

func TestWaitEndsWithTheWaiter(t *testing.T) {
	w, _ := waitOn(t)
	ended := make(chan error, 1)
	go func() {
		for {
			if err := w.wait(never(), func() bool { return false }); err != nil {
				ended <- err
				return
			}
		}
	}()
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	w.wake() // does nothing
}
