package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// startLimit is how long a proxy may take until all its workers run and the
// healthy request is answered: a start-up that computes for seconds takes long
// where other programs take the CPUs.
const startLimit = time.Minute

func (l *lab) nginx() bool { return l.c.Proxy == "nginx" }

func (l *lab) pidFile() string { return filepath.Join(l.run, l.c.Proxy+".pid") }

// startProxy starts the proxy and waits until it serves.
func (l *lab) startProxy(ctx context.Context) error {
	j, err := l.launchProxy()
	if err != nil {
		return err
	}
	end := time.Now().Add(startLimit)
	for !l.complete() {
		if err := l.startTrouble(ctx, j, end); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	for !l.healthy(ctx, 2*time.Second) {
		if err := l.startTrouble(ctx, nil, end); err != nil {
			return fmt.Errorf("%w; the healthy request %s is not answered with 200", err, l.c.Healthy.Path)
		}
		time.Sleep(50 * time.Millisecond)
	}
	l.brood.note()
	return nil
}

func (l *lab) launchProxy() (*job, error) {
	if l.c.Start != "" {
		return l.shell("start", l.c.Start)
	}
	argv := []string{"nginx", "-p", l.run, "-c", l.configFile()}
	if !l.nginx() {
		argv = []string{"haproxy", "-D", "-f", l.configFile(), "-p", l.pidFile()}
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, fmt.Errorf("%s: not installed; on Debian: apt-get install %s", argv[0], packages[l.c.Proxy])
	}
	argv[0] = path // whole, as services have it: nginx starts the binary of an upgrade by this name
	return launch(l.brood, filepath.Join(l.out, "start.log"), nil, argv...)
}

var packages = map[string]string{
	"nginx":   "nginx libnginx-mod-http-lua lua-resty-core lua-cjson",
	"haproxy": "haproxy",
}

// startTrouble says why a start can no longer succeed, or nil.
func (l *lab) startTrouble(ctx context.Context, j *job, end time.Time) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if j != nil && j.ended() && j.err != nil {
		return fmt.Errorf("start of the proxy: %v: %s", j.err, l.lastWords())
	}
	if time.Now().After(end) {
		return fmt.Errorf("start of the proxy: %d of %d workers after %v: %s", len(l.workers()), l.c.Workers,
			startLimit, l.lastWords())
	}
	return nil
}

// lastWords returns the end of what the proxy printed.
func (l *lab) lastWords() string {
	for _, f := range []string{filepath.Join(l.out, "start.log"), filepath.Join(l.run, "error.log")} {
		data, _ := readBounded(f, 64<<10)
		if text := strings.TrimSpace(string(data)); text != "" {
			return strings.ReplaceAll(text[max(0, len(text)-600):], "\n", " | ")
		}
	}
	return "it printed nothing"
}

// complete finds the master and says whether all workers run.
func (l *lab) complete() bool {
	if l.master == 0 {
		pid, err := readPID(l.pidFile())
		if err != nil || !lives(pid) {
			return false
		}
		l.master = pid
	}
	l.brood.add(l.master)
	if !l.nginx() {
		return true
	}
	return len(l.workers()) == l.c.Workers
}

// workers returns the pids of the workers that take new connections.
func (l *lab) workers() []int { return l.workersOf(l.master) }

func (l *lab) workersOf(master int) []int {
	if !l.nginx() {
		if master == 0 || !lives(master) {
			return nil
		}
		return []int{master}
	}
	out := nginxWorkers(master)
	// The master of a binary upgrade has put its own pid there.
	if pid, err := readPID(l.pidFile()); err == nil && pid != master {
		out = append(slices.DeleteFunc(out, func(c int) bool { return c == pid }), nginxWorkers(pid)...)
	}
	return out
}

func nginxWorkers(master int) []int {
	if master == 0 || !lives(master) {
		return nil
	}
	var out []int
	for _, c := range children(master) {
		t := title(c)
		// A young worker keeps the title of its master until init_worker is over.
		young := strings.Contains(t, "master process")
		if (young || strings.Contains(t, "worker process")) && !strings.Contains(t, "shutting down") {
			out = append(out, c)
		}
	}
	return out
}

// endProcesses ends the proxy and everything else of the run and returns what
// would not end.
func (l *lab) endProcesses() []int {
	l.brood.note()
	if l.master != 0 {
		l.brood.signal(l.master, unix.SIGTERM) // a master told to stop starts nobody anew
		time.Sleep(50 * time.Millisecond)
	}
	return l.brood.kill()
}

func readPID(file string) (int, error) {
	data, err := readBounded(file, 32)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return 0, errors.New("no pid in " + file)
	}
	return pid, nil
}

// readBounded reads the last most bytes of a file.
func readBounded(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New(file + ": not a regular file")
	}
	buf := make([]byte, min(st.Size(), most))
	n, err := f.ReadAt(buf, max(0, st.Size()-most))
	if n == len(buf) {
		err = nil
	}
	return buf[:n], err
}
