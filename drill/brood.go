package drill

import (
	"sync"
	"time"

	"github.com/spinguard/spinguard/profiler/procmem"
	"golang.org/x/sys/unix"
)

// brood remembers every process that belongs to one run, so that all of them,
// and nothing else, can be ended: what was started, what descends from it, and
// what lives in a session that was made for it. Goroutines may share it.
type brood struct {
	mu       sync.Mutex
	born     map[int]uint64 // pid -> start time
	sessions map[int]uint64 // session leader -> its start time
	since    uint64         // start time of the run itself; nothing older is ours
}

// newBrood begins a run: no process that is older than now will ever be ours.
func newBrood() *brood {
	return &brood{born: map[int]uint64{}, sessions: map[int]uint64{}, since: ticksNow()}
}

// ticksNow returns the present in the unit of process start times.
func ticksNow() uint64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	const perSecond = 100 // USER_HZ, fixed on every Linux that Go runs on
	return uint64(ts.Sec)*perSecond + uint64(ts.Nsec)/(1e9/perSecond)
}

// add takes up a process that the run started.
func (b *brood) add(pid int) {
	s, err := readStat(pid)
	if err != nil || s.start+1 < b.since {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.born[pid] = s.start
	if s.session == pid {
		b.sessions[pid] = s.start
	}
}

// note takes up what descends from the known processes by now.
func (b *brood) note() {
	for _, pid := range b.alive() {
		for _, c := range children(pid) {
			b.mu.Lock()
			_, known := b.born[c]
			b.mu.Unlock()
			if !known {
				b.add(c)
			}
		}
	}
}

// alive returns the known processes that still run. Those that ended are
// forgotten, so that a later owner of the pid is not taken for them.
func (b *brood) alive() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []int
	for pid, start := range b.born {
		if s, err := readStat(pid); err == nil && s.start == start && s.state != 'Z' && s.state != 'X' {
			out = append(out, pid)
		} else {
			delete(b.born, pid)
		}
	}
	return out
}

// strays takes up processes that lost their parent but live in a session of
// this run: helpers of a killed worker, daemons that a shell line started.
func (b *brood) strays() {
	b.note()
	for _, pid := range allPIDs() {
		s, err := readStat(pid)
		if err != nil {
			continue
		}
		b.mu.Lock()
		leader, ours := b.sessions[s.session]
		b.mu.Unlock()
		if ours && s.start >= leader {
			b.add(pid)
		}
	}
}

// kill ends every process of the run and waits for that, at most five seconds.
// It returns the pids that would not end.
func (b *brood) kill() []int {
	deadline := time.Now().Add(5 * time.Second)
	for {
		b.strays()
		left := b.alive()
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		for _, pid := range left {
			b.signal(pid, unix.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// signal reaches the very process that was taken up, or nobody.
func (b *brood) signal(pid int, sig unix.Signal) {
	b.mu.Lock()
	start, ok := b.born[pid]
	b.mu.Unlock()
	if !ok {
		return
	}
	p, err := procmem.Open(pid)
	if err != nil {
		return
	}
	defer func() { _ = p.Close() }()
	if p.StartTime == start {
		_ = p.Signal(sig)
	}
}
