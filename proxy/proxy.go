// Package proxy finds the HTTP proxies that run on this host and knows what
// each kind keeps in its memory: the progress word, the request being served,
// the upstream. It tells kinds apart by what the executable exports, never by
// file names or titles. It only reads: nothing is stopped, signalled, traced or
// written.
package proxy

// Kind is a family of proxies.
type Kind string

// The kinds that the Finder knows.
const (
	Nginx   Kind = "nginx"   // nginx, OpenResty and what is built from them
	HAProxy Kind = "haproxy" // one process, one event loop per thread
	Go      Kind = "go"      // Caddy, Traefik: no event loop of their own
)

// Progress is a word in the worker's memory that changes whenever its event
// loop turns. Size 0: there is none.
type Progress struct {
	Addr uint64 // in the address space of the worker
	Size int    // 4 or 8 bytes, little-endian
	Name string // "ngx_current_msec", "activity[2]+0"
}

// Worker is one thread that runs an event loop. PID and StartTime together
// name a process for ever; a pid alone does not.
type Worker struct {
	PID, TID  int
	StartTime uint64 // of the process, clock ticks since boot
	Index     int    // nginx: worker number; haproxy: thread number
	Master    int    // pid of the master; 0: none (single process)
	Kind      Kind
	// Exiting: it was told to end and does not take new work.
	Exiting bool
	// Started: initialization is over. nginx titles a worker "worker process"
	// only after init_worker has run.
	Started  bool
	Progress Progress
	Exe      string // path of the executable as the process sees it
}

// Proxy is one running instance: a master with its workers, or one process.
type Proxy struct {
	ID   string // "nginx-4711": kind and pid of the master
	Name string // for metrics: product and listen address or configuration; few values, stable over reloads

	Kind      Kind
	Master    int // pid of the master, or of the only process
	StartTime uint64
	// MasterGone: the master has ended, its workers still run.
	MasterGone bool
	// Upgraded is the pid of the older master if this one is its binary upgrade.
	Upgraded int
	// Starter is the pid of the process that started the master, as the master
	// remembers it (nginx): the older master of a binary upgrade, even if that
	// one has ended. 0: not known.
	Starter int

	Exe        string // as the process sees it
	ExeDeleted bool   // the file was replaced or removed since the start
	Prefix     string // nginx
	ConfPath   string
	Version    string   // "nginx/1.22.1", "haproxy/2.6.12", "caddy/v2.8.4"
	Listen     []string // "127.0.0.1:8080", "unix:/run/x.sock", sorted
	StatsSock  []string // haproxy: addresses of its stats sockets
	Workers    []Worker // sorted by index, then pid
}
