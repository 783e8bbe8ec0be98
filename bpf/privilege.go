package bpf

import (
	"errors"
	"runtime"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// NeedsCapability says whether this kernel wants CAP_BPF also for what a loaded
// sampler still does: since 5.19 who holds a map may change it; before, that
// depends on kernel.unprivileged_bpf_disabled. It tries, in a thread of its own.
func (s *Sampler) NeedsCapability() bool {
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var had, less [2]unix.CapUserData
	if unix.Capget(&header, &had[0]) != nil {
		runtime.UnlockOSThread()
		return true
	}
	less = had
	for _, c := range []int{unix.CAP_BPF, unix.CAP_SYS_ADMIN} {
		less[c/32].Effective &^= 1 << (c % 32)
	}
	needs := unix.Capset(&header, &less[0]) != nil || !s.mapsAnswer()
	if unix.Capset(&header, &had[0]) == nil {
		runtime.UnlockOSThread() // else the thread ends with its goroutine
	}
	return needs
}

// mapsAnswer says whether this thread may look into the maps.
func (s *Sampler) mapsAnswer() bool {
	var v samplerWatch
	err := s.objects.Watched.Lookup(uint32(0), &v)
	return err == nil || errors.Is(err, ebpf.ErrKeyNotExist)
}
