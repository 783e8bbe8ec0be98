package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func (h Host) lockdown() (Finding, bool) {
	text, ok := h.read("/sys/kernel/security/lockdown")
	f := Finding{Check: "kernel lockdown", Level: OK, Found: text}
	if strings.Contains(text, "[confidentiality]") {
		f.Level, f.Why, f.Remedy = Fail, "it forbids BPF to read memory: no stacks, no progress word", "boot with lockdown=integrity, or without it"
	}
	return f, ok
}

func (h Host) yama() (Finding, bool) {
	n, ok := h.number("/proc/sys/kernel/yama/ptrace_scope")
	f := Finding{Check: "kernel.yama.ptrace_scope", Level: OK, Found: strconv.Itoa(n)}
	if n >= 3 {
		f.Level, f.Why, f.Remedy = Fail, "even root may not read the memory of workers", "sysctl can't lower it: boot with kernel.yama.ptrace_scope=2 or less"
	}
	return f, ok
}

func (h Host) sampleRate() (Finding, bool) {
	n, ok := h.number("/proc/sys/kernel/perf_event_max_sample_rate")
	f := Finding{Check: "kernel.perf_event_max_sample_rate", Level: OK, Found: strconv.Itoa(n)}
	if n < 999 {
		f.Level, f.Why, f.Remedy = Warn, "a suspected worker is sampled 499 times a second; the kernel refuses more than this", "sysctl kernel.perf_event_max_sample_rate=50000"
	}
	return f, ok
}

// paranoia says what the kernel's strictness about perf events costs.
func (h Host) paranoia() (Finding, bool) {
	n, ok := h.number("/proc/sys/kernel/perf_event_paranoid")
	f := Finding{Check: "kernel.perf_event_paranoid", Level: OK, Found: strconv.Itoa(n)}
	if n > 2 {
		f.Level, f.Why = Warn, "Debian's kernels then let only CAP_SYS_ADMIN sample, so the agent keeps that capability; without it, it is blind"
		f.Remedy = "sysctl kernel.perf_event_paranoid=2, as other distributions have it, and restart the agent: it then drops CAP_SYS_ADMIN"
	}
	return f, ok
}

// needed are the capabilities that the unit grants.
var needed = []struct {
	bit  int
	name string
	why  string
}{
	{unix.CAP_BPF, "CAP_BPF", "the sampler can't be loaded"},
	{unix.CAP_PERFMON, "CAP_PERFMON", "the sampler can't be attached"},
	{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "memory of workers can't be read: no requests, no values"},
	{unix.CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "executables and crumbs of other users can't be read"},
	{unix.CAP_KILL, "CAP_KILL", "a stuck worker can't be evicted"},
}

func (h Host) capabilities() (Finding, bool) {
	text, _ := h.read("/proc/self/status")
	_, rest, ok := strings.Cut(text, "CapEff:")
	if !ok {
		return Finding{}, false
	}
	line, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	have, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	if err != nil {
		return Finding{}, false
	}
	f := Finding{Check: "capabilities", Level: OK, Found: fmt.Sprintf("all %d that the agent needs", len(needed))}
	var lacks, why []string
	for _, c := range needed {
		if have&(1<<c.bit) == 0 {
			lacks, why = append(lacks, c.name), append(why, c.why)
		}
	}
	if len(lacks) > 0 {
		f.Level, f.Found = Fail, fmt.Sprintf("%d of %d lack: %s", len(lacks), len(needed), strings.Join(lacks, " "))
		f.Why, f.Remedy = strings.Join(why, "; "), "run as root, or as the unit that the package installs"
	}
	return f, true
}
