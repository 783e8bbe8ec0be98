package proxy

import (
	"bytes"
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

func isESRCH(err error) bool { return errors.Is(err, unix.ESRCH) || errors.Is(err, io.EOF) }

// parseSchedstat reads "cpu delay slices" (nanoseconds, nanoseconds, count).
func parseSchedstat(b []byte) (cpu, delay time.Duration, slices uint64, ok bool) {
	var v [3]uint64
	for i := range v {
		b = bytes.TrimLeft(b, " ")
		n, rest := cutNumber(b)
		if len(rest) == len(b) {
			return 0, 0, 0, false
		}
		v[i], b = n, rest
	}
	return time.Duration(v[0]), time.Duration(v[1]), v[2], true
}

// cutNumber reads leading digits.
func cutNumber(b []byte) (v uint64, rest []byte) {
	for len(b) > 0 && b[0] >= '0' && b[0] <= '9' {
		v, b = v*10+uint64(b[0]-'0'), b[1:]
	}
	return v, b
}

// statusValue finds the value of a line of /proc/PID/status. The name of the
// process is in its first line, with its newlines escaped.
func statusValue(b []byte, key string) []byte {
	at := bytes.Index(b, append([]byte("\n"), key...))
	if at < 0 {
		return nil
	}
	value, _, _ := bytes.Cut(b[at+1+len(key):], []byte("\n"))
	return bytes.TrimLeft(value, " \t")
}

func statusNumber(b []byte, key string) uint64 {
	v, _ := cutNumber(statusValue(b, key))
	return v
}

func statusLetter(b []byte, key string) byte {
	if v := statusValue(b, key); len(v) > 0 {
		return v[0]
	}
	return 0
}
