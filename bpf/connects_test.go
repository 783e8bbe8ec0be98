package bpf

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func openConnects(t *testing.T) *Connects {
	t.Helper()
	c, err := LoadConnects()
	if err == nil {
		err = c.Attach()
	}
	if err != nil {
		if os.Getenv("REQUIRE_BPF") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// listen returns a listening socket that accepts nothing by itself.
func listen(t *testing.T, backlog int) (fd int, address netip.AddrPort) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*unix.SockaddrInet4).Port))
}

func (c *Connects) of(t *testing.T, address netip.AddrPort) Tally {
	t.Helper()
	all, untold, err := c.Read()
	if err != nil || untold != 0 {
		t.Fatal(untold, err)
	}
	return all[Peer{os.Getpid(), address}]
}

func TestCountsConnectionsThatEnd(t *testing.T) {
	c := openConnects(t)
	if err := c.SetOwners([]int{os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	for reset, want := range map[bool]Tally{
		false: {Begun: 2, Established: 2, Closed: 2},
		true:  {Begun: 2, Established: 2, Closed: 2, Reset: 2},
	} {
		fd, address := listen(t, 16)
		for range 2 {
			conn, err := net.Dial("tcp", address.String())
			if err != nil {
				t.Fatal(err)
			}
			if got := c.of(t, address); got.Established == got.Closed {
				t.Errorf("an open connection is counted as closed: %+v", got)
			}
			acceptAndClose(t, fd, reset)
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
		if got := c.of(t, address); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func acceptAndClose(t *testing.T, fd int, reset bool) {
	t.Helper()
	conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
	if err == nil && reset {
		err = unix.SetsockoptLinger(conn, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(conn)
}

func TestCountsConnectsThatFail(t *testing.T) {
	c := openConnects(t)
	if err := c.SetOwners([]int{os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	// Refused, over both families.
	for _, text := range []string{"127.0.0.1:1", "[::1]:1"} {
		address := netip.MustParseAddrPort(text)
		if conn, err := net.Dial("tcp", text); err == nil {
			_ = conn.Close()
			t.Fatal("somebody listens at", text)
		}
		if got, want := c.of(t, address), (Tally{Begun: 1, Refused: 1}); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	// Nobody accepts, the queue is full: SYNs are dropped.
	_, full := listen(t, 0)
	filler, err := net.Dial("tcp", full.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = filler.Close() }()
	if conn, err := net.DialTimeout("tcp", full.String(), 200*time.Millisecond); err == nil {
		_ = conn.Close()
		t.Fatal("the queue is not full")
	}
	if got, want := c.of(t, full), (Tally{Begun: 2, Established: 1, GivenUp: 1}); got != want {
		t.Errorf("given up: %+v, want %+v", got, want)
	}
	once := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_SYNCNT, 1) })
	}}
	if conn, err := once.Dial("tcp", full.String()); err == nil {
		_ = conn.Close()
		t.Fatal("the queue is not full")
	}
	if got, want := c.of(t, full), (Tally{Begun: 3, Established: 1, GivenUp: 1, TimedOut: 1}); got != want {
		t.Errorf("timed out: %+v, want %+v", got, want)
	}
	// Who is no owner is neither counted nor kept.
	if err := c.SetOwners(nil); err != nil {
		t.Fatal(err)
	}
	_, _ = net.Dial("tcp", "127.0.0.1:1")
	if all, _, err := c.Read(); err != nil || len(all) != 0 {
		t.Errorf("%v, %v; nobody is watched", all, err)
	}
}

// An agent that has dropped what only its start needed attaches it later.
func TestConnectsAreAttachedWithoutCapabilities(t *testing.T) {
	c := openConnects(t)
	if err := c.SetOwners([]int{os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	_, _ = net.Dial("tcp", "127.0.0.1:1")
	if err := c.Detach(); err != nil || c.Attached() {
		t.Fatal(err)
	}
	_, _ = net.Dial("tcp", "127.0.0.1:1")
	address := netip.MustParseAddrPort("127.0.0.1:1")
	if got := c.of(t, address); got.Refused != 1 {
		t.Errorf("detached: %+v", got)
	}
	if thisHost().before(5, 19) {
		t.Skip("before 5.19 also the maps want CAP_BPF")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		none := [2]unix.CapUserData{}
		err := unix.Capset(&header, &none[0])
		if err == nil {
			err = c.Attach()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	_, _ = net.Dial("tcp", "127.0.0.1:1")
	if got, want := c.of(t, address), (Tally{Begun: 1, Refused: 1}); got != want {
		t.Errorf("attached anew: %+v, want %+v", got, want)
	}
}
