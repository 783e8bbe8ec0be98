package proxy

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The test's own process is the one that is looked at.
func TestDescriptorsThatKeepALoopAwake(t *testing.T) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	must(t, err)
	defer func() { _ = unix.Close(ep) }()
	pipe := func(write bool) int {
		var p [2]int
		must(t, unix.Pipe2(p[:], unix.O_CLOEXEC))
		t.Cleanup(func() { _ = unix.Close(p[0]); _ = unix.Close(p[1]) })
		if write {
			_, err := unix.Write(p[1], []byte("x"))
			must(t, err)
		}
		return p[0]
	}
	register := func(fd int, events uint32) {
		must(t, unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}))
	}
	ready, quiet, once, gone := pipe(true), pipe(false), pipe(true), pipe(true)
	register(ready, unix.EPOLLIN)
	register(quiet, unix.EPOLLIN)
	register(once, unix.EPOLLIN|unix.EPOLLET)
	kept, err := unix.FcntlInt(uintptr(gone), unix.F_DUPFD_CLOEXEC, 900)
	must(t, err)
	defer func() { _ = unix.Close(kept) }()
	number, err := unix.FcntlInt(uintptr(gone), unix.F_DUPFD_CLOEXEC, 800)
	must(t, err)
	register(number, unix.EPOLLIN)
	must(t, unix.Close(number)) // the registration outlives the descriptor

	list, err := AlwaysReady(os.Getpid())
	must(t, err)
	var got []string
	for _, r := range list {
		if r.FD == ready || r.FD == quiet || r.FD == once || r.FD == number {
			got = append(got, r.String())
		}
	}
	if len(got) != 2 || !strings.Contains(got[0], "pipe") || !strings.HasSuffix(got[0], "always ready: EPOLLIN") ||
		!strings.Contains(got[1], "fd 800 (closed here") {
		t.Errorf("%q; want the full pipe %d and the closed descriptor %d", got, ready, number)
	}
	if _, err := AlwaysReady(1 << 30); err == nil {
		t.Error("a process that is not there can be looked into")
	}
}

func FuzzParseEpoll(f *testing.F) {
	f.Add([]byte("pos:\t0\nflags:\t02\ntfd:        5 events: 80000019 data: 7f2e  pos:0 ino:9 sdev:9\n"))
	f.Add([]byte("tfd: -1 events: zz\n"))
	f.Fuzz(func(t *testing.T, info []byte) {
		for _, r := range parseEpoll(info) {
			if r.fd < 0 {
				t.Errorf("descriptor %d", r.fd)
			}
		}
	})
}
