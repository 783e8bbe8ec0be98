package watchdog

import (
	"encoding/binary"
	"slices"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/proxy"
)

// siblingOf translates a pid as the proxy sees it into one of its workers', 0
// if none has it.
func (a *Agent) siblingOf(w *worker, nspid int) int {
	if nspid == 0 {
		return 0
	}
	for _, other := range a.workers {
		if other.in == w.in && other.nspid == nspid {
			return other.PID
		}
	}
	return 0
}

// lockFunction is where nginx spins for a lock of shared memory.
const lockFunction = "ngx_shmtx_lock"

// spinOwner returns the pid of the worker that owns the lock for which a
// worker spins on its CPU, 0 if it does not. The lock's first field points to
// the word that holds the owner's pid; a register or a word near the top of
// the stack points to the lock.
func (a *Agent) spinOwner(w *worker, s bpf.Sample, frames []stack.Frame, memory procmem.Memory) int {
	if w.Kind != proxy.Nginx || !slices.ContainsFunc(frames[:min(3, len(frames))], func(f stack.Frame) bool { return f.Function == lockFunction }) {
		return 0
	}
	candidates := slices.Clone(s.Registers[:])
	for words := s.Stack.Data; len(words) >= 8 && len(candidates) < 64; words = words[8:] {
		candidates = append(candidates, binary.NativeEndian.Uint64(words))
	}
	for _, p := range candidates {
		word, err := procmem.Uint64(memory, p)
		if err != nil {
			continue
		}
		owner, err := procmem.Uint64(memory, word)
		if err != nil || owner > maxPID {
			continue
		}
		if pid := a.siblingOf(w, int(owner)); pid != 0 && pid != w.PID {
			return pid
		}
	}
	return 0
}

// maxPID is the largest pid that Linux gives.
const maxPID = 1 << 22
