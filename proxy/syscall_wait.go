package proxy

import (
	"bytes"
	"strconv"
)

// EventWait says whether a system call is one in which the event loop of that
// kind sleeps while there is nothing to do. The number is the native one.
func EventWait(kind Kind, number int64) bool {
	if kind == Go {
		// An idle thread of the Go runtime waits in a futex.
		return eventWaits[number] || number == futexNumber
	}
	return eventWaits[number]
}

// syscallState is what /proc/PID/syscall says.
type syscallState struct {
	Running bool  // on CPU or runnable: nothing else is known
	Number  int64 // -1: blocked outside of a system call
	Args    [6]uint64
	SP, PC  uint64
}

// parseSyscall reads "running", "-1 sp pc" or "number a0 .. a5 sp pc".
func parseSyscall(b []byte) (syscallState, bool) {
	f := bytes.Fields(b)
	switch len(f) {
	case 1:
		return syscallState{Running: true, Number: -1}, string(f[0]) == "running"
	case 3, 9:
	default:
		return syscallState{}, false
	}
	number, err := strconv.ParseInt(string(f[0]), 10, 64)
	if err != nil || (number == -1) != (len(f) == 3) {
		return syscallState{}, false
	}
	s := syscallState{Number: number}
	values := make([]uint64, len(f)-1)
	for i, text := range f[1:] {
		hex, ok := bytes.CutPrefix(text, []byte("0x"))
		if !ok {
			return syscallState{}, false
		}
		if values[i], err = strconv.ParseUint(string(hex), 16, 64); err != nil {
			return syscallState{}, false
		}
	}
	copy(s.Args[:], values[:len(values)-2])
	s.SP, s.PC = values[len(values)-2], values[len(values)-1]
	return s, true
}
