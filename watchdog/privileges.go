package watchdog

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler"
)

// lasting are the capabilities that the agent needs for as long as it runs;
// docs/security.md says what each is for and how that was measured.
var lasting = map[int]string{
	unix.CAP_PERFMON:         "CAP_PERFMON",         // events of suspects to come
	unix.CAP_SYS_PTRACE:      "CAP_SYS_PTRACE",      // memory of workers to come
	unix.CAP_DAC_READ_SEARCH: "CAP_DAC_READ_SEARCH", // their executables
	unix.CAP_KILL:            "CAP_KILL",            // evictions
	// Ledgers and hook files may lie in folders of other users. The unit does
	// not grant it; elsewhere, who has it keeps it.
	unix.CAP_DAC_OVERRIDE: "CAP_DAC_OVERRIDE",
}

// asked are those that some kernels want for longer than others; see
// bpf.Sampler.Needs.
var asked = map[int]string{unix.CAP_BPF: "CAP_BPF", unix.CAP_SYS_ADMIN: "CAP_SYS_ADMIN"}

// openForLater opens what needs capabilities that will be dropped.
func (a *Agent) openForLater() {
	profiler.OpenKernelNames()    // CAP_SYSLOG
	_, _ = tracepoint("anything") // CAP_SYS_ADMIN, where tracefs is not mounted
}

// finishStart tests the sampler, and then drops what only the start needed. It
// waits for the counter of connects to be loaded.
func (a *Agent) finishStart(ctx context.Context, connects <-chan struct{}) {
	if a.sampler != nil {
		a.selfTest(ctx)
	}
	<-connects
	bpf.ForgetTypes()
	debug.FreeOSMemory() // starting takes twice the memory that watching does
	if ctx.Err() == nil {
		a.dropPrivileges()
	}
}

// dropPrivileges gives up the capabilities that only the start needed, in all
// threads and for good. What is still needed of them must be open by now.
func (a *Agent) dropPrivileges() {
	keep := mask(lasting)
	if a.sampler != nil {
		for _, bit := range a.sampler.Needs() {
			keep |= 1 << bit
		}
	}
	kept, err := restrict(keep)
	if err != nil {
		a.log.Warn("capabilities that only the start needs could not be dropped", zap.Error(err))
		return
	}
	a.log.Info("capabilities dropped", zap.String("kept", describeCapabilities(kept)))
}

func mask(list map[int]string) (m uint64) {
	for bit := range list {
		m |= 1 << bit
	}
	return m
}

// restrict reduces the capabilities of all threads to those in keep and returns
// what is left. Nothing is gained by it.
func restrict(keep uint64) (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now, next [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return 0, fmt.Errorf("capget: %v", err)
	}
	for i := range next {
		m := uint32(keep >> (32 * i))
		next[i] = unix.CapUserData{Effective: now[i].Effective & m, Permitted: now[i].Permitted & m}
	}
	// Linux keeps capabilities by thread. This one sets them in each, and
	// fails as a whole in a program with cgo, which this one is not.
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&next[0])), 0); errno != 0 {
		return 0, fmt.Errorf("capset: %v", errno)
	}
	return uint64(next[1].Effective)<<32 | uint64(next[0].Effective), nil
}

func describeCapabilities(set uint64) string {
	var names []string
	for bit := range 64 {
		if set&(1<<bit) == 0 {
			continue
		}
		names = append(names, cmp.Or(lasting[bit], asked[bit]))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
