package proxy

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// numbers lists the numeric entries of a directory below /proc. It keeps the
// directory open and its buffers, so that a listing costs little more than the
// system calls. The entries of a /proc directory come in ascending order.
type numbers struct {
	dir *os.File
	buf []byte
	out []int
}

// Enough for any kernel.pid_max of 64-bit kernels (2^22) would be 4 Mi
// entries; a host with more processes than this is not listed whole.
const maxNumbers = 1 << 20

func openNumbers(path string) (*numbers, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &numbers{dir: dir, buf: make([]byte, 8<<10)}, nil
}

func (n *numbers) close() {
	if n != nil {
		_ = n.dir.Close()
	}
}

// list returns the numbers; the slice is valid until the next call.
func (n *numbers) list() ([]int, error) {
	fd := int(n.dir.Fd())
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return nil, fmt.Errorf("list of %s: %v", n.dir.Name(), err)
	}
	n.out = n.out[:0]
	for len(n.out) < maxNumbers {
		got, err := unix.Getdents(fd, n.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list of %s: %v", n.dir.Name(), err)
		}
		if got <= 0 {
			break
		}
		n.out = appendNumbers(n.out, n.buf[:got])
	}
	return n.out, nil
}

// appendNumbers cuts linux_dirent64 records: inode 8, offset 8, length 2,
// type 1, then the name with its NUL.
func appendNumbers(out []int, b []byte) []int {
	const head = 19
	for len(b) > head {
		size := int(b[16]) | int(b[17])<<8
		if size <= head || size > len(b) {
			break
		}
		if v, ok := leadingNumber(b[head:size]); ok {
			out = append(out, v)
		}
		b = b[size:]
	}
	return out
}

// leadingNumber reads digits up to a NUL; anything else is no number.
func leadingNumber(b []byte) (int, bool) {
	v, i := 0, 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if i >= 18 {
			return 0, false
		}
		v = v*10 + int(b[i]-'0')
	}
	return v, i > 0 && (i == len(b) || b[i] == 0)
}

// procPath is "/proc/PID/name" without the cost of fmt.
func procPath(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}
