package bpf

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// open loads the sampler, or skips the test where the kernel refuses it.
func open(t *testing.T) *Sampler {
	t.Helper()
	s, err := Open(49)
	if err != nil {
		if os.Getenv("REQUIRE_BPF") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// spin starts a process that keeps a CPU busy until the test ends.
func spin(t *testing.T, options ...func(*exec.Cmd)) int {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
	for _, o := range options {
		o(cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

// collect reads samples until n have come. It gives up after 20 s of silence.
func collect(t *testing.T, s *Sampler, n int) []Sample {
	t.Helper()
	var got []Sample
	end := time.Now().Add(20 * time.Second)
	for len(got) < n {
		sample, err := s.Read(time.Now().Add(200 * time.Millisecond))
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(end) {
			continue
		}
		if err != nil {
			t.Fatalf("after %d of %d samples: %v", len(got), n, err)
		}
		got = append(got, sample)
		end = time.Now().Add(20 * time.Second)
	}
	return got
}

func TestSamplerCopiesOnlyWatchedThreads(t *testing.T) {
	s := open(t)
	watched, other := spin(t), spin(t)
	if err := s.Watch(Watch{PID: watched, TID: watched, Full: true}); err != nil {
		t.Fatal(err)
	}
	samples := collect(t, s, 10)
	for i, sample := range samples {
		if sample.PID != watched {
			t.Fatalf("sample %d is of pid %d, watched %d, not watched %d", i, sample.PID, watched, other)
		}
		if i > 0 && sample.CPUTime < samples[i-1].CPUTime {
			t.Errorf("CPU time went back from %v to %v", samples[i-1].CPUTime, sample.CPUTime)
		}
		if sample.Weight != time.Second/49 {
			t.Errorf("sample stands for %v, want %v", sample.Weight, time.Second/49)
		}
		if !sample.Full || sample.Stack.Addr != sample.Registers[7] || len(sample.Stack.Data) == 0 {
			t.Errorf("stack window at %#x of %d bytes, stack pointer %#x", sample.Stack.Addr, len(sample.Stack.Data), sample.Registers[7])
		}
	}
}

// A thread in a container is sampled under the ids that it has here.
func TestSamplesThreadsInContainers(t *testing.T) {
	s := open(t)
	pid := spin(t, func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID} })
	if err := s.Watch(Watch{PID: pid, TID: pid, Full: true}); err != nil {
		t.Fatal(err)
	}
	stacks := 0
	for _, sample := range collect(t, s, 5) {
		if sample.PID != pid || sample.TID != pid {
			t.Fatalf("sample of pid %d, thread %d; watched is %d", sample.PID, sample.TID, pid)
		}
		if len(sample.Stack.Data) > 0 { // not while it executes its program
			stacks++
		}
	}
	if stacks == 0 {
		t.Error("no sample has a stack")
	}
}

func TestBurstReplacesTheSteadyRate(t *testing.T) {
	s := open(t)
	pid := spin(t)
	w := Watch{PID: pid, TID: pid}
	if err := s.Watch(w); err != nil {
		t.Fatal(err)
	}
	if err := s.Burst(w, 997); err != nil {
		t.Fatal(err)
	}
	samples := collect(t, s, 50)
	for _, sample := range samples[10:] {
		if want := time.Duration(period(997)); sample.Weight != want || !sample.Full {
			t.Fatalf("sample of period %v, full %v; want only full ones of %v", sample.Weight, sample.Full, want)
		}
	}
	if err := s.Calm(w); err != nil {
		t.Fatal(err)
	}
	samples = collect(t, s, 300)
	if last := samples[len(samples)-1]; last.Weight != time.Second/49 {
		t.Errorf("after the burst a sample stands for %v, want %v", last.Weight, time.Second/49)
	}
}

func TestCountersCountWhatWasTaken(t *testing.T) {
	s := open(t)
	pid := spin(t)
	if err := s.Watch(Watch{PID: pid, TID: pid}); err != nil {
		t.Fatal(err)
	}
	collect(t, s, 5)
	c, err := s.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if c.Taken < 5 || c.LostRing != 0 {
		t.Errorf("counters %+v, want at least 5 taken and none lost", c)
	}
	if c.NoProgressWord != c.Taken {
		t.Errorf("%d samples without a progress word, want all %d: none was named", c.NoProgressWord, c.Taken)
	}
}

func TestProgressWordIsTheProcessesOwn(t *testing.T) {
	s := open(t)
	pid := os.Getpid()
	word := uint64(0x5350494e)
	if err := s.Watch(Watch{PID: pid, TID: spinHere(t), ProgressAddr: addressOf(&word), ProgressSize: 8}); err != nil {
		t.Fatal(err)
	}
	for _, sample := range collect(t, s, 3) {
		if !sample.ProgressOK || sample.Progress != word {
			t.Errorf("progress word %#x, readable %v; want %#x", sample.Progress, sample.ProgressOK, word)
		}
	}
}

func TestReadAfterClose(t *testing.T) {
	s := open(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(time.Now().Add(time.Second)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read after close: %v, want os.ErrClosed", err)
	}
}

func TestDecodeRefusesShortRecords(t *testing.T) {
	for _, n := range []int{0, 1, headerSize - 1} {
		if _, err := decode(make([]byte, n)); err == nil {
			t.Errorf("a record of %d bytes was taken", n)
		}
	}
}

// The kernel's verifier walks each way through the program before it loads it:
// that must take milliseconds, and stay far from the million instructions at
// which it gives up.
func TestVerifierHasLittleToDo(t *testing.T) {
	s := open(t)
	info, err := s.objects.Sample.Info()
	if err != nil {
		t.Fatal(err)
	}
	n, known := info.VerifiedInstructions()
	if !known {
		t.Skip("the kernel does not tell what it verified")
	}
	t.Logf("%d instructions verified", n)
	if n > 40_000 {
		t.Errorf("%d instructions verified", n)
	}
}

// Windows are copied for who asks for them only, and outlive the record.
func TestWindowsAreLoadedOnDemand(t *testing.T) {
	h := samplerHeader{Full: 1, StackAddr: 0x7000, StackLen: 4}
	raw := append(rawOf(h, headerSize, make([]byte, stacksAt-headerSize)), "deep"...)
	var a assembler
	s, whole, err := a.take(raw)
	if err != nil || !whole || len(s.Stack.Data) != 0 || !s.Full {
		t.Fatalf("%+v, %v, %v", s.Stack, whole, err)
	}
	for range 2 {
		if err := s.Load(); err != nil || string(s.Stack.Data) != "deep" || s.Stack.Addr != 0x7000 {
			t.Fatalf("%+v, %v", s.Stack, err)
		}
		clear(raw)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(make([]byte, headerSize))
	f.Add(make([]byte, int(unsafe.Sizeof(samplerRecord{}))))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var a assembler
		s, _, err := a.take(raw)
		if err == nil {
			err = s.Load()
		}
		if err == nil && len(s.Stack.Data) > len(raw) {
			t.Errorf("a stack of %d bytes out of a record of %d", len(s.Stack.Data), len(raw))
		}
	})
}

func TestCloseEndsRead(t *testing.T) {
	s := open(t)
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := s.Read(time.Now().Add(time.Hour)); errors.Is(err, os.ErrClosed) {
				ended <- err
				return
			}
		}
	}()
	time.Sleep(50 * time.Millisecond)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Close does not end a Read that waits")
	}
}
