package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// ListenUnix listens on a socket file of mode 0660, makes its folder (mode 0755:
// the ledgers that workers read may lie there too),
// and replaces the file of an agent that died. If an agent still answers there,
// it gives an error.
func ListenUnix(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("socket folder: %s", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket: %s", err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("socket: %s", err)
	}
	return l, nil
}

// removeStale removes a socket on which nobody answers. It removes nothing else.
func removeStale(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("socket: %s", err)
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("socket %s: there is a file that is no socket; remove it or set run_dir", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = c.Close()
		return fmt.Errorf("socket %s: another agent answers there", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("stale socket: %s", err)
	}
	return nil
}

// ListenTCP listens on a loopback address. Any other address would show
// requests to the network, so it is refused; see Certificates.Listen.
func ListenTCP(addr string) (net.Listener, error) {
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen %q: %s", addr, err)
	}
	if !a.IP.IsLoopback() {
		return nil, fmt.Errorf("listen %q: not a loopback address such as 127.0.0.1:9517; anything else is served over TLS only, see tls in the configuration", addr)
	}
	l, err := net.ListenTCP("tcp", a)
	if err != nil {
		return nil, fmt.Errorf("listen %q: %s", addr, err)
	}
	return l, nil
}
