package signals

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Worker is a process that is watched.
type Worker struct {
	Proxy string
	Index int // 1-based, kept over restarts
	PID   int
	Since time.Time
}

// Signal is one thing that the host says.
type Signal struct {
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"`            // files, listen_queue, syn_backlog, connects, connections, restart
	Proxy string    `json:"proxy,omitempty"` // empty: of the host
	Text  string    `json:"text"`
}

// Report is the state at one time.
type Report struct {
	Files    map[int]Files     // by pid
	Queues   map[int]float64   // by pid: how full the fullest listen queue of the worker is, 0 to 1; only those over a quarter
	Counters map[string]uint64 // of the kernel, see Counters
	Restarts map[string]uint64 // by proxy, since the collector was made
	Backends map[string]uint64 // restarts of processes on this host that workers connect to, by address
	Connects []PeerConnects    // see TakeConnects
	Signals  []Signal          // what is new since the last report
	// Suspected says why it is worth counting connects for a while: empty if
	// nothing hints at trouble with them.
	Suspected string
	// Counting says why connects are counted now, empty if they are not. Who
	// calls TakeConnects sets it.
	Counting string
}

func (r *Report) suspect(why string) {
	if r.Suspected == "" {
		r.Suspected = why
	}
}

// Collector reads the signals. One goroutine uses it.
type Collector struct {
	proc     string
	dump     func(states uint32, each func(socket)) error
	trends   map[int]*trend
	counters map[string]uint64
	rounds   int
	unwalked int  // rounds since all connections were looked at, this one included
	grew     bool // then there were far more to some peer than usual
	workers  map[string]map[int]Worker
	restarts map[string]uint64
	peers    map[string]*peer
	raised   map[string]time.Time
	connects map[ownPeer]Tally
	totals   map[proxyPeer]*total
	backends map[netip.AddrPort]*backend
	others   map[netip.AddrPort]time.Time // see notOurs
}

// Every is how often Collect is meant to be called.
const Every = 5 * time.Second

// again is how long a signal that stays is not repeated.
const again = 5 * time.Minute

// New returns a collector that reads this host.
func New() *Collector {
	d := &dumper{proc: "/proc"}
	return newCollector("/proc", d.dump)
}

func newCollector(proc string, dump func(uint32, func(socket)) error) *Collector {
	return &Collector{proc: proc, dump: dump, trends: map[int]*trend{}, workers: map[string]map[int]Worker{},
		restarts: map[string]uint64{}, peers: map[string]*peer{}, raised: map[string]time.Time{},
		connects: map[ownPeer]Tally{}, totals: map[proxyPeer]*total{}, backends: map[netip.AddrPort]*backend{}, others: map[netip.AddrPort]time.Time{}}
}

// Collect reads everything once. What can't be read is left out and named in
// the error; the rest of the report holds.
func (c *Collector) Collect(now time.Time, workers []Worker) (Report, error) {
	r := Report{Files: map[int]Files{}, Queues: map[int]float64{}, Counters: map[string]uint64{}, Restarts: map[string]uint64{}, Backends: map[string]uint64{}}
	c.rounds++
	c.collectFiles(&r, now, workers)
	c.collectRestarts(&r, now, workers)
	err := c.collectCounters(&r, now)
	if e := c.collectSockets(&r, now, workers); err == nil {
		err = e
	}
	for key, at := range c.raised {
		if now.Sub(at) > again {
			delete(c.raised, key)
		}
	}
	slices.SortFunc(r.Signals, compare)
	return r, err
}

// raise adds a signal unless the same was told within the last minutes.
func (c *Collector) raise(r *Report, key string, s Signal) {
	if _, told := c.raised[key]; told || len(c.raised) > 1024 {
		return
	}
	c.raised[key] = s.At
	r.Signals = append(r.Signals, s)
}

func (c *Collector) collectFiles(r *Report, now time.Time, workers []Worker) {
	alive := map[int]*trend{}
	for _, w := range workers {
		t := c.trends[w.PID]
		if t == nil {
			t = &trend{}
		}
		f, err := c.openFiles(w.PID, t)
		if err != nil {
			continue // it has just ended
		}
		if alive[w.PID] == nil { // threads of one process are one
			t.add(now, f.Open)
		}
		alive[w.PID] = t
		f.Exhaustion = t.exhaustion(f)
		r.Files[w.PID] = f
		c.judgeFiles(r, now, w, f)
	}
	c.trends = alive
}

func (c *Collector) judgeFiles(r *Report, now time.Time, w Worker, f Files) {
	nearly := float64(f.Open) > 0.9*float64(f.Limit)
	soon := f.Exhaustion > 0 && f.Exhaustion < 5*time.Minute && float64(f.Open) > 0.5*float64(f.Limit)
	if !nearly && !soon {
		return
	}
	text := fmt.Sprintf("worker %d (pid %d) has %d of %d files open", w.Index, w.PID, f.Open, f.Limit)
	if f.Exhaustion > 0 {
		text += fmt.Sprintf(", and runs out of them in %s if it goes on like this", f.Exhaustion.Round(time.Second))
	}
	c.raise(r, fmt.Sprint("files ", w.PID), Signal{At: now, Kind: "files", Proxy: w.Proxy, Text: text})
}

// collectRestarts tells which workers have another process than before.
func (c *Collector) collectRestarts(r *Report, now time.Time, workers []Worker) {
	seen := map[string]map[int]Worker{}
	for _, w := range workers {
		if seen[w.Proxy] == nil {
			seen[w.Proxy] = map[int]Worker{}
		}
		// While it is replaced there are two: the younger counts.
		if old, ok := seen[w.Proxy][w.Index]; !ok || w.Since.After(old.Since) {
			seen[w.Proxy][w.Index] = w
		}
	}
	for proxy, list := range seen {
		fresh := 0
		for index, w := range list {
			if before, ok := c.workers[proxy][index]; ok && before.PID != w.PID {
				fresh++
			}
		}
		if fresh > 0 {
			c.restarts[proxy] += uint64(fresh)
			r.Signals = append(r.Signals, Signal{At: now, Kind: "restart", Proxy: proxy, Text: fmt.Sprintf("%d workers are new processes", fresh)})
		}
		r.Restarts[proxy] = c.restarts[proxy]
		if c.workers[proxy] == nil && len(c.workers) > 64 {
			clear(c.workers)
			clear(c.restarts)
		}
		c.workers[proxy] = list
	}
}

// Counters are the kernel's counters that are read, and the signal that a rise
// of at least so many within five seconds means.
var Counters = map[string]struct {
	Rise       uint64
	Kind, Text string
}{
	"TcpExt.ListenOverflows":   {1, "listen_queue", "connections met a full listen queue"},
	"TcpExt.ListenDrops":       {1, "listen_queue", "connections were dropped by listening sockets"},
	"TcpExt.SyncookiesSent":    {1, "syn_backlog", "SYN cookies were sent: the SYN backlog is full"},
	"TcpExt.TCPReqQFullDrop":   {1, "syn_backlog", "SYNs were dropped: the SYN backlog is full"},
	"TcpExt.TCPTimeouts":       {100, "connects", "timeouts of TCP"},
	"TcpExt.TCPAbortOnTimeout": {1, "connects", "connections were given up after timeouts"},
	"TcpExt.TCPSynRetrans":     {10, "connects", "SYNs had to be repeated: a peer does not answer connects"},
	"Tcp.AttemptFails":         {20, "connects", "connects failed"},
}

func (c *Collector) collectCounters(r *Report, now time.Time) error {
	for _, name := range []string{"netstat", "snmp"} {
		f, err := os.Open(filepath.Join(c.proc, "net", name))
		if err != nil {
			return err
		}
		all, err := ParseCounters(f)
		_ = f.Close()
		if err != nil {
			return err
		}
		for key := range Counters {
			if v, ok := all[key]; ok {
				r.Counters[key] = v
			}
		}
	}
	for key, v := range r.Counters {
		before, known := c.counters[key]
		if rule := Counters[key]; known && v >= before && v-before >= rule.Rise {
			text := fmt.Sprintf("%d %s (%s)", v-before, rule.Text, key)
			if rule.Kind == "connects" {
				r.suspect(text)
			}
			c.raise(r, key, Signal{At: now, Kind: rule.Kind, Text: text})
		}
	}
	c.counters = r.Counters
	return nil
}

func ownerOf(path string) (uint32, bool) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return st.Uid, err == nil
}
