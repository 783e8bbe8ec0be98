package proxy

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"sort"
	"strconv"
	"strings"
)

const (
	// Listening sockets are opened first and have low numbers.
	maxListenFDs = 4096
	maxNetLines  = 200_000
	stateListen  = "0A"
)

// listening returns the addresses of the listening sockets that a process
// holds, from its own network namespace.
func listening(pid int) []string {
	owned := socketInodes(pid)
	if len(owned) == 0 {
		return nil
	}
	var list []string
	for _, table := range []string{"tcp", "tcp6"} {
		eachSocket(pid, table, func(s netSocket) bool {
			if s.state == stateListen && owned[s.inode] {
				list = append(list, s.local.String())
			}
			// The kernel lists the listening sockets first.
			return s.state == stateListen
		})
	}
	list = append(list, listeningUnix(pid, owned)...)
	sort.Strings(list)
	return unique(list)
}

func unique(sorted []string) []string {
	var out []string
	for i, s := range sorted {
		if i == 0 || s != sorted[i-1] {
			out = append(out, s)
		}
	}
	return out
}

// socketInodes returns the inodes of the sockets behind the first descriptors.
func socketInodes(pid int) map[uint64]bool {
	fds, err := openNumbers(procPath(pid, "fd"))
	if err != nil {
		return nil
	}
	defer fds.close()
	list, err := fds.list()
	if err != nil {
		return nil
	}
	inodes := make(map[uint64]bool)
	for _, fd := range list[:min(len(list), maxListenFDs)] {
		if inode, ok := socketInode(fdTarget(pid, fd)); ok {
			inodes[inode] = true
		}
	}
	return inodes
}

func fdTarget(pid, fd int) string {
	target, _ := os.Readlink(procPath(pid, "fd/"+strconv.Itoa(fd)))
	return target
}

func socketInode(target string) (uint64, bool) {
	text, ok := strings.CutPrefix(target, "socket:[")
	if !ok {
		return 0, false
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64)
	return inode, err == nil
}

// netSocket is one line of /proc/PID/net/tcp, tcp6, udp or udp6.
type netSocket struct {
	local, remote netip.AddrPort
	state         string // hex, "0A" is LISTEN
	inode         uint64
}

// eachSocket calls do for each line until it returns false.
func eachSocket(pid int, table string, do func(netSocket) bool) {
	f, err := os.Open(procPath(pid, "net/"+table))
	if err != nil {
		return
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	for i := 0; i < maxNetLines && scan.Scan(); i++ {
		if s, ok := parseNetSocket(scan.Text()); ok && !do(s) {
			return
		}
	}
}

func parseNetSocket(line string) (netSocket, bool) {
	f := strings.Fields(line)
	if len(f) < 10 || !strings.HasSuffix(f[0], ":") {
		return netSocket{}, false
	}
	s := netSocket{state: f[3]}
	var ok [3]bool
	s.local, ok[0] = parseNetAddr(f[1])
	s.remote, ok[1] = parseNetAddr(f[2])
	inode, err := strconv.ParseUint(f[9], 10, 64)
	s.inode, ok[2] = inode, err == nil
	return s, ok == [3]bool{true, true, true}
}

// parseNetAddr reads "0100007F:1F90": 32-bit words in the host's byte order.
func parseNetAddr(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	p, errPort := strconv.ParseUint(port, 16, 16)
	if err != nil || errPort != nil || len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.LittleEndian.Uint32(b[i:]))
	}
	addr, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(p)), true
}

// unixSocket is one line of /proc/PID/net/unix.
type unixSocket struct {
	inode     uint64
	listening bool
	path      string
}

func eachUnix(pid int, do func(unixSocket) bool) {
	f, err := os.Open(procPath(pid, "net/unix"))
	if err != nil {
		return
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	for i := 0; i < maxNetLines && scan.Scan(); i++ {
		if s, ok := parseUnixSocket(scan.Text()); ok && !do(s) {
			return
		}
	}
}

// parseUnixSocket reads "address: references protocol flags type state inode path".
func parseUnixSocket(line string) (unixSocket, bool) {
	const acceptsConnections = 0x10000
	f := strings.SplitN(strings.Join(strings.Fields(line), " "), " ", 8)
	if len(f) < 7 || !strings.HasSuffix(f[0], ":") {
		return unixSocket{}, false
	}
	flags, err := strconv.ParseUint(f[3], 16, 32)
	inode, errInode := strconv.ParseUint(f[6], 10, 64)
	if err != nil || errInode != nil {
		return unixSocket{}, false
	}
	s := unixSocket{inode: inode, listening: flags&acceptsConnections != 0}
	if len(f) == 8 {
		s.path = f[7]
	}
	return s, true
}

func listeningUnix(pid int, owned map[uint64]bool) []string {
	var list []string
	eachUnix(pid, func(s unixSocket) bool {
		if s.listening && owned[s.inode] && s.path != "" {
			list = append(list, fmt.Sprintf("unix:%s", s.path))
		}
		return true
	})
	return list
}
