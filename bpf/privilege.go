package bpf

import (
	"errors"
	"runtime"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Needs returns which of CAP_BPF and CAP_SYS_ADMIN this kernel wants also for
// what a running sampler still does. Since 5.19 who holds a map may change it;
// before, that depends on kernel.unprivileged_bpf_disabled. And Debian's kernels
// let only CAP_SYS_ADMIN open events while kernel.perf_event_paranoid is over 2,
// as it is there. It tries, in a thread that gives the capability up for a while.
func (s *Sampler) Needs() (list []int) {
	if !without(s.mapsAnswer, unix.CAP_BPF, unix.CAP_SYS_ADMIN) {
		list = append(list, unix.CAP_BPF)
	}
	if !without(s.eventOpens, unix.CAP_SYS_ADMIN) {
		list = append(list, unix.CAP_SYS_ADMIN)
	}
	return list
}

// without returns what f does in a thread that lacks these capabilities, or
// false if there can be no such thread.
func without(f func() bool, capabilities ...int) bool {
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var had, less [2]unix.CapUserData
	if unix.Capget(&header, &had[0]) != nil {
		runtime.UnlockOSThread()
		return false
	}
	less = had
	for _, c := range capabilities {
		less[c/32].Effective &^= 1 << (c % 32)
	}
	ok := unix.Capset(&header, &less[0]) == nil && f()
	if unix.Capset(&header, &had[0]) == nil {
		runtime.UnlockOSThread() // else the thread ends with its goroutine
	}
	return ok
}

// mapsAnswer says whether this thread may look into the maps.
func (s *Sampler) mapsAnswer() bool {
	var v samplerWatch
	err := s.objects.Watched.Lookup(uint32(0), &v)
	return err == nil || errors.Is(err, ebpf.ErrKeyNotExist)
}

// eventOpens says whether this thread may open the event of a burst.
func (s *Sampler) eventOpens() bool {
	fd, err := openClock(unix.Gettid(), -1, s.rate, s.objects.Sample.FD())
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}
