package watchdog

import (
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/proxy"
)

// futex is the system call of x86-64 in which nginx waits for a lock.
const futex = 202

// lockOwner returns the pid of the worker that owns the lock which a sleeping
// worker waits for, 0 if it waits for none. Nginx keeps the owner's pid in the
// first word of a zone of shared memory, and sleeps on a semaphore behind it.
func (a *Agent) lockOwner(w *worker, look proxy.Look) int {
	if w.Kind != proxy.Nginx || look.Syscall != futex {
		return 0
	}
	maps, err := procmem.ReadMaps(w.PID)
	if err != nil {
		return 0
	}
	zone, ok := maps.Find(look.Args[0])
	if !ok || !zone.Shared || !zone.Write {
		return 0
	}
	word, err := procmem.Uint64(w.process.Memory(), zone.Start)
	if err != nil || word == 0 || word > 1<<22 {
		return 0
	}
	return a.siblingOf(w, int(word))
}

// siblingOf translates a pid as the proxy sees it into one of its workers', 0
// if none has it.
func (a *Agent) siblingOf(w *worker, nspid int) int {
	for _, other := range a.workers {
		if other.in == w.in && other.nspid == nspid {
			return other.PID
		}
	}
	return 0
}
