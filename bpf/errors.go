package bpf

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The ways in which a kernel can refuse the sampler. Test with errors.Is; the
// error itself is a *RefusedError and tells the remedy.
var (
	ErrNoBTF       = errors.New("kernel without BTF")
	ErrCapability  = errors.New("capability missing")
	ErrLockdown    = errors.New("kernel lockdown")
	ErrMemlock     = errors.New("locked memory limit")
	ErrParanoid    = errors.New("perf_event_paranoid forbids it")
	ErrNoEvent     = errors.New("no cpu-clock event")
	ErrKernelOld   = errors.New("kernel older than 5.8")
	ErrVerifier    = errors.New("verifier refused the sampler")
	errUnexplained = errors.New("refused")
)

// RefusedError says what was refused, why, and what to do about it.
type RefusedError struct {
	Step   string // what was being done
	Reason error  // one of the sentinels above
	Remedy string
	Cause  error // as the kernel put it
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("%s: %v (%v)", e.Step, e.Reason, e.Cause)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Unwrap lets errors.Is find the reason.
func (e *RefusedError) Unwrap() error { return e.Reason }

// host is what an error is explained by; tests replace it.
type host struct {
	btf      bool
	lockdown string // "none", "integrity", "confidentiality", or empty
	paranoid string
	caps     func(capability int) bool
	kernel   string
}

func thisHost() host {
	h := host{caps: hasCapability}
	_, err := os.Stat("/sys/kernel/btf/vmlinux")
	h.btf = err == nil
	if b, err := os.ReadFile("/sys/kernel/security/lockdown"); err == nil {
		h.lockdown = selected(string(b))
	}
	if b, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid"); err == nil {
		h.paranoid = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		h.kernel = strings.TrimSpace(string(b))
	}
	return h
}

// selected cuts the bracketed word out of "none [integrity] confidentiality".
func selected(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	word, _, _ := strings.Cut(rest, "]")
	return word
}

func hasCapability(capability int) bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&hdr, &data[0]) != nil {
		return false
	}
	return data[capability/32].Effective&(1<<(capability%32)) != 0
}

// explain turns an error of loading or attaching into a RefusedError.
func (h host) explain(step string, cause error) error {
	remedy, reason := h.reason(step, cause)
	return &RefusedError{Step: step, Reason: reason, Remedy: remedy, Cause: cause}
}

func (h host) reason(step string, cause error) (remedy string, reason error) {
	sysAdmin := h.caps(unix.CAP_SYS_ADMIN)
	switch {
	case !h.btf && step == stepLoad:
		return "use a kernel built with CONFIG_DEBUG_INFO_BTF=y (/sys/kernel/btf/vmlinux)", ErrNoBTF
	case h.lockdown == "confidentiality" && isPermission(cause):
		return "boot with lockdown=integrity or lower: confidentiality forbids BPF to read memory", ErrLockdown
	case isPermission(cause) && !sysAdmin && !h.caps(unix.CAP_BPF):
		return "run as root, or grant CAP_BPF (CAP_SYS_ADMIN before 5.8)", ErrCapability
	case isPermission(cause) && !sysAdmin && !h.caps(unix.CAP_PERFMON):
		return "run as root, or grant CAP_PERFMON (CAP_SYS_ADMIN before 5.8)", ErrCapability
	case isPermission(cause) && step == stepEvent:
		return "set kernel.perf_event_paranoid to 2 or lower (it is " + h.paranoid + "), or grant CAP_SYS_ADMIN", ErrParanoid
	case isPermission(cause) || errors.Is(cause, unix.ENOMEM):
		return "raise LimitMEMLOCK of the service (ulimit -l) to 64 MiB: kernels before 5.11 count BPF maps against it", ErrMemlock
	case step == stepEvent && isAbsent(cause):
		return "the kernel lacks CONFIG_PERF_EVENTS or the container hides it", ErrNoEvent
	case errors.Is(cause, unix.EINVAL) && h.before(5, 8):
		return "use kernel 5.8 or later (this is " + h.kernel + ")", ErrKernelOld
	case step == stepLoad:
		return "report this kernel version: " + h.kernel, ErrVerifier
	}
	return "", errUnexplained
}

func (h host) before(major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(h.kernel, "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a < major || a == major && b < minor
}

func isPermission(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
}

func isAbsent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOSYS)
}
