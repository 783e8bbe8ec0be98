package signals

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// socket is one TCP socket as the kernel's socket diagnosis has it. Of a
// listening socket, received is how many connections wait to be accepted and
// sent how many may.
type socket struct {
	state         uint8
	local, remote netip.AddrPort
	received      uint32
	sent          uint32
	uid           uint32
	inode         uint32
}

// States of TCP, as bits of a request.
const (
	established = 1
	synSent     = 2
	closeWait   = 8
	listen      = 10
)

const (
	diagRequestSize = 56
	diagMessageSize = 72
	maxSockets      = 200_000
	diagByFamily    = 20 // SOCK_DIAG_BY_FAMILY
)

// dumper has the kernel list sockets.
type dumper struct {
	proc      string
	listeners map[byte]int // by family, when they were last listed
}

// dump lists the TCP sockets of our network namespace that are in one of the
// states. The kernel filters, so idle hosts and hosts with a hundred thousand
// connections cost the same when only listeners are asked for; for connections
// it walks a table that is large on any host, so it is not asked for those of a
// family that has none.
func (d *dumper) dump(states uint32, each func(socket)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return fmt.Errorf("socket diagnosis: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	timeout := unix.Timeval{Sec: 2}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return fmt.Errorf("socket diagnosis: %w", err)
	}
	listening := states == 1<<listen
	if listening {
		d.listeners = map[byte]int{}
	}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		if !listening && d.none(family) {
			continue
		}
		if err := unix.Sendto(fd, diagRequest(family, states), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return fmt.Errorf("socket diagnosis: %w", err)
		}
		count := func(s socket) { d.listeners[family]++; each(s) }
		if !listening {
			count = each
		}
		if err := receiveSockets(fd, count); err != nil {
			return err
		}
	}
	return nil
}

// none says that a family has no sockets besides the listening ones, as far as
// the kernel's count of them tells.
func (d *dumper) none(family byte) bool {
	if d.listeners == nil {
		return false
	}
	name, group := "sockstat", "TCP: inuse "
	if family == unix.AF_INET6 {
		name, group = "sockstat6", "TCP6: inuse "
	}
	text, err := os.ReadFile(filepath.Join(d.proc, "net", name))
	if err != nil {
		return errors.Is(err, os.ErrNotExist) && family == unix.AF_INET6 // a kernel without it
	}
	inUse, ok := socketsInUse(text, group)
	return ok && inUse <= d.listeners[family]
}

// socketsInUse reads a count of /proc/net/sockstat: "TCP: inuse 9 orphan 0 ...".
func socketsInUse(text []byte, group string) (int, bool) {
	_, rest, ok := bytes.Cut(text, []byte(group))
	if !ok {
		return 0, false
	}
	number, _, _ := bytes.Cut(rest, []byte("\n"))
	number, _, _ = bytes.Cut(number, []byte(" "))
	n, err := strconv.Atoi(string(number))
	return n, err == nil
}

func diagRequest(family byte, states uint32) []byte {
	b := make([]byte, unix.NLMSG_HDRLEN+diagRequestSize)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], diagByFamily)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b[16], b[17] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[20:], states)
	return b
}

func receiveSockets(fd int, each func(socket)) error {
	buffer := make([]byte, 64<<10)
	for seen := 0; seen < maxSockets; {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("socket diagnosis: %w", err)
		}
		done, count, err := parseMessages(buffer[:n], each)
		if done || err != nil {
			return err
		}
		seen += count
	}
	return fmt.Errorf("socket diagnosis: over %d sockets", maxSockets)
}

// parseMessages reads the netlink messages of one packet. It says whether the
// list has ended.
func parseMessages(b []byte, each func(socket)) (done bool, count int, err error) {
	for len(b) >= unix.NLMSG_HDRLEN {
		size := int(binary.NativeEndian.Uint32(b))
		if size < unix.NLMSG_HDRLEN || size > len(b) {
			return false, count, fmt.Errorf("socket diagnosis: message of %d bytes in %d", size, len(b))
		}
		body := b[unix.NLMSG_HDRLEN:size]
		switch binary.NativeEndian.Uint16(b[4:]) {
		case unix.NLMSG_DONE:
			return true, count, nil
		case unix.NLMSG_ERROR:
			code := int32(0)
			if len(body) >= 4 {
				code = int32(binary.NativeEndian.Uint32(body))
			}
			return false, count, fmt.Errorf("socket diagnosis: %w", unix.Errno(-code))
		case diagByFamily:
			if s, ok := parseSocket(body); ok {
				each(s)
				count++
			}
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return false, count, nil
}

func parseSocket(b []byte) (socket, bool) {
	if len(b) < diagMessageSize {
		return socket{}, false
	}
	s := socket{state: b[1], received: binary.NativeEndian.Uint32(b[56:]), sent: binary.NativeEndian.Uint32(b[60:]),
		uid: binary.NativeEndian.Uint32(b[64:]), inode: binary.NativeEndian.Uint32(b[68:])}
	address := func(at int) netip.Addr {
		if b[0] == unix.AF_INET {
			return netip.AddrFrom4([4]byte(b[at : at+4]))
		}
		return netip.AddrFrom16([16]byte(b[at : at+16])).Unmap()
	}
	s.local = netip.AddrPortFrom(address(8), binary.BigEndian.Uint16(b[4:]))
	s.remote = netip.AddrPortFrom(address(24), binary.BigEndian.Uint16(b[6:]))
	return s, true
}
