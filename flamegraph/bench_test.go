package flamegraph

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// renderVariable holds "in out" in a child process that renders once, so that
// its peak memory is that of one rendering.
const renderVariable = "SPINGUARD_TEST_RENDER"

func TestMain(m *testing.M) {
	var in, out string
	if n, _ := fmt.Sscan(os.Getenv(renderVariable), &in, &out); n == 2 {
		if _, err := Convert(in, "", out); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(peakMemory())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// BenchmarkRender renders stacks that are all different, 30 deep, of 2,195
// functions: the worst case. Peak memory is the child's: the spinguard that
// SPINGUARD_BIN names, else this test. FlameGraph's script runs beside it where
// FLAMEGRAPH names it or it is on PATH.
func BenchmarkRender(b *testing.B) {
	for _, stacks := range []int{10_000, 100_000, 1_000_000} {
		in := filepath.Join(b.TempDir(), "in.folded")
		writeSynthetic(b, in, stacks)
		packed := filepath.Join(b.TempDir(), "in.pb.gz")
		if _, err := Convert(in, "", packed); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("folded/svg/%d", stacks), func(b *testing.B) { render(b, in, "out.svg") })
		b.Run(fmt.Sprintf("folded/html/%d", stacks), func(b *testing.B) { render(b, in, "out.html") })
		b.Run(fmt.Sprintf("pprof/svg/%d", stacks), func(b *testing.B) { render(b, packed, "out.svg") })
		b.Run(fmt.Sprintf("flamegraph.pl/%d", stacks), func(b *testing.B) { script(b, in) })
	}
}

func writeSynthetic(b *testing.B, path string, stacks int) {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	syntheticFolded(w, stacks, 1)
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

func render(b *testing.B, in, out string) {
	out = filepath.Join(b.TempDir(), out)
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	measure(b, func() *exec.Cmd {
		if program := os.Getenv("SPINGUARD_BIN"); program != "" {
			return exec.Command(program, "flamegraph", in, "-o", out)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), renderVariable+"="+in+" "+out)
		return cmd
	})
	if info, err := os.Stat(out); err == nil {
		b.ReportMetric(float64(info.Size())/1e6, "MB-out")
	}
}

func script(b *testing.B, in string) {
	path, err := exec.LookPath(cmp.Or(os.Getenv("FLAMEGRAPH"), "flamegraph.pl"))
	if err != nil {
		b.Skip("flamegraph.pl: not on PATH; set FLAMEGRAPH to where it is")
	}
	measure(b, func() *exec.Cmd { return exec.Command(path, in) })
}

// peakMemory is this process's own peak, in KiB. What wait4 tells its parent, as
// measure takes it of other programs, is at least the parent's size at the fork.
func peakMemory() int {
	status, _ := os.ReadFile("/proc/self/status")
	kib := 0
	if _, line, ok := strings.Cut(string(status), "VmHWM:"); ok {
		_, _ = fmt.Sscan(line, &kib)
	}
	return kib
}

func measure(b *testing.B, command func() *exec.Cmd) {
	peak, cpu := 0.0, 0.0
	for b.Loop() {
		cmd := command()
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		kib := 0.0
		if _, err := fmt.Sscan(string(out), &kib); err != nil {
			if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
				kib = float64(usage.Maxrss)
			}
		}
		peak = max(peak, kib)
		cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	b.ReportMetric(peak/1024, "MiB-peak")
	b.ReportMetric(cpu/float64(b.N), "cpu-s/op")
}
