package haproxyctl

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// pathMax is the longest path that a unix socket's address holds.
const pathMax = 107

// Addresses returns where to dial a stats socket that HAProxy's configuration
// names, best first. A unix socket lies in the root directory that a process
// of it had when it bound the socket: chroot comes later, so the roots of its
// master and of this process are tried as well.
func Addresses(socket string, pids ...int) []string {
	path, ok := strings.CutPrefix(socket, "unix:")
	if !ok {
		if host, port, err := net.SplitHostPort(socket); err == nil && (host == "0.0.0.0" || host == "::") {
			return []string{net.JoinHostPort("127.0.0.1", port)}
		}
		return []string{socket}
	}
	var list []string
	for _, pid := range pids {
		if pid > 0 {
			list = append(list, fmt.Sprintf("unix:/proc/%d/root%s", pid, path))
		}
	}
	return append(list, socket)
}

// DialAny opens a session with the first address that answers.
func DialAny(ctx context.Context, addresses []string) (*Conn, error) {
	var failure error
	for _, address := range addresses {
		c, err := Dial(ctx, address)
		if err == nil {
			return c, nil
		}
		if failure == nil || !os.IsNotExist(err) {
			failure = err
		}
	}
	if failure == nil {
		failure = fmt.Errorf("runtime API: no stats socket")
	}
	return nil, failure
}

func connect(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return d.DialContext(ctx, "tcp", address)
	}
	if len(path) <= pathMax {
		return d.DialContext(ctx, "unix", path)
	}
	// Too long for an address: go through a descriptor of its directory.
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("directory of %s: %w", path, err)
	}
	defer func() { _ = unix.Close(dir) }()
	return d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path)))
}
