package profiler

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/symbol"
)

// selfTestEnv tells a copy of the program that it is the child of a self-test.
const selfTestEnv = "SPINGUARD_SELFTEST_CHILD"

// SelfTestReport says what the profiler can do on this very kernel.
type SelfTestReport struct {
	Samples int `json:"samples"` // of the child
	// User and Syscall count the stacks taken in user code and inside of
	// system calls; the Whole ones reach from the child's known functions to
	// the entry of the process.
	User         int      `json:"user"`
	UserWhole    int      `json:"user_whole"`
	Syscall      int      `json:"syscall"`
	SyscallWhole int      `json:"syscall_whole"`
	KernelNames  bool     `json:"kernel_names"` // kallsyms shows addresses
	Problems     []string `json:"problems"`     // sentences; empty: all works
}

// OK says that nothing is missing.
func (r SelfTestReport) OK() bool { return len(r.Problems) == 0 }

// String says it in one line.
func (r SelfTestReport) String() string {
	text := fmt.Sprintf("%d samples of a known child: whole stacks %d of %d in user code, %d of %d in system calls",
		r.Samples, r.UserWhole, r.User, r.SyscallWhole, r.Syscall)
	if !r.OK() {
		text += "; " + strings.Join(r.Problems, "; ")
	}
	return text
}

// SelfTest samples and unwinds a child of this program, whose stack is known:
// less than a second of CPU. The main function must call SelfTestChild
// before anything else. The source must have no other reader meanwhile. An
// error means that the test could not be run.
func SelfTest(ctx context.Context, source Source, cache *symbol.Cache) (SelfTestReport, error) {
	child, stop, err := startChild(ctx)
	if err != nil {
		return SelfTestReport{}, err
	}
	defer stop()
	p, err := Open(child, cache)
	if err != nil {
		return SelfTestReport{}, err
	}
	defer func() { _ = p.Close() }()
	var r SelfTestReport
	if err := r.sample(ctx, source, p); err != nil {
		return r, err
	}
	r.judge()
	return r, nil
}

// startChild runs this program again and waits until it says that it is there.
func startChild(ctx context.Context) (pid int, stop func(), err error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), selfTestEnv+"=1", "GOMAXPROCS=1")
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, fmt.Errorf("child of the self-test: %v", err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != selfTestEnv+"\n" {
		stop()
		return 0, nil, errors.New("child of the self-test: it does not answer; main must call SelfTestChild first")
	}
	return cmd.Process.Pid, stop, nil
}

const (
	selfTestTime    = 2 * time.Second // at most
	selfTestSamples = 20              // enough, of each kind
)

// sample counts the child's stacks until there are enough of them.
func (r *SelfTestReport) sample(ctx context.Context, source Source, p *Process) error {
	c := &capture{source: source, process: p, watched: map[int]uint64{}, builder: NewBuilder(time.Time{}, 0), switches: p.SwitchesStacks()}
	if err := c.threads(); err != nil {
		return err
	}
	defer c.unwatch()
	for end := time.Now().Add(selfTestTime); time.Now().Before(end) && ctx.Err() == nil; {
		s, err := source.Read(time.Now().Add(rescan))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if err := c.threads(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if _, ours := c.watched[s.TID]; !ours {
			continue
		}
		r.count(p, s)
		if err := c.placeStack(s); err != nil {
			return err
		}
		if r.UserWhole >= selfTestSamples && r.SyscallWhole >= selfTestSamples {
			return nil
		}
	}
	return nil
}

func (r *SelfTestReport) count(p *Process, s bpf.Sample) {
	r.Samples++
	res := p.Understand(s)
	spin, call := false, false
	for _, f := range res.Stack.Frames {
		spin = spin || strings.HasSuffix(f.Function, ".selfTestSpin")
		call = call || strings.HasSuffix(f.Function, ".selfTestCall")
	}
	whole := res.Stack.Truncated == "" && (spin || call)
	switch {
	case s.InKernel && s.Syscall >= 0:
		r.Syscall++
		if whole {
			r.SyscallWhole++
		}
	case !s.InKernel:
		r.User++
		if whole {
			r.UserWhole++
		}
	}
}

// judge makes sentences of the numbers. Few samples of a child hit its start
// or its runtime, so half of them must be whole.
func (r *SelfTestReport) judge() {
	r.KernelNames = symbol.KernelShown()
	say := func(bad bool, text string) {
		if bad {
			r.Problems = append(r.Problems, text)
		}
	}
	say(r.Samples == 0, "no samples arrive: the sampler does not see this kernel's threads")
	const enough = 4
	say(r.User >= enough && r.UserWhole*2 < r.User, "stacks of user code are cut: profiles will be incomplete")
	say(r.Syscall >= enough && r.SyscallWhole*2 < r.Syscall, "stacks below system calls are cut: the registers that the kernel saved are not found")
	say(!r.KernelNames, "kernel functions have no names: kernel.kptr_restrict hides them")
}

// IsSelfTestChild says whether this process is the child of a self-test.
func IsSelfTestChild() bool { return os.Getenv(selfTestEnv) != "" }

// SelfTestChild never returns in a child of SelfTest, and does nothing in any
// other process. The main function calls it before anything else.
func SelfTestChild() {
	if !IsSelfTestChild() {
		return
	}
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	if err != nil {
		os.Exit(1)
	}
	fmt.Println(selfTestEnv)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		for range 100 {
			selfTestSpin(3000)
			selfTestCall(zero, 10)
		}
	}
	os.Exit(0)
}

// selfTestSink keeps the compiler from removing the loop.
var selfTestSink uint64

//go:noinline
func selfTestSpin(n uint64) {
	for i := range n {
		selfTestSink = selfTestSink*31 + i
	}
}

//go:noinline
func selfTestCall(fd, n int) {
	var buf [32 << 10]byte // so many bytes keep the kernel busy for a while
	for range n {
		if _, err := unix.Read(fd, buf[:]); err != nil {
			return
		}
	}
}
