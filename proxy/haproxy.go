package proxy

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// haproxyProcess is one process that runs HAProxy: a master (-W, -Ws) or a
// process with one event loop per thread.
type haproxyProcess struct {
	instance
	tasks    *numbers
	last     []int // thread ids at the latest refresh
	threads  []haproxyThread
	mapped   int // how often that was tried
	stopping bool
	master   bool
	conf     []string
	listen   []string
	stats    []string
	lookups  int
}

func watchHAProxy(pid int, e *exe) (watched, error) {
	in, err := openInstance(pid, e)
	if err != nil {
		return nil, err
	}
	h := &haproxyProcess{instance: in, conf: haproxyConf(pid)}
	if h.tasks, err = openNumbers(procPath(pid, "task")); err == nil {
		err = h.refresh()
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *haproxyProcess) close() {
	h.tasks.close()
	h.instance.close()
}

func (h *haproxyProcess) refresh() error {
	addr, _ := h.addr("activity")
	if _, err := procmem.Uint32(h.mem, addr); err != nil {
		return err
	}
	h.master, h.stopping = h.uint32("master") != 0, h.uint32("stopping") != 0
	tids, err := h.tasks.list()
	if err != nil {
		return procmem.ErrGone
	}
	if h.threads == nil || !equal(tids, h.last) {
		h.last = append(h.last[:0], tids...)
		h.threads = h.mapThreads(tids)
	}
	if len(h.listen) == 0 && h.lookups < listenLookups {
		h.lookups++
		h.listen = renamed(listening(h.pid))
		h.stats = statsSockets(h.pid, h.parent, h.conf)
	}
	return nil
}

// renamed undoes what HAProxy does to a unix socket: it binds "path.PID.tmp"
// and renames it, and the kernel keeps telling the old name.
func renamed(listen []string) []string {
	for i, text := range listen {
		if strings.HasPrefix(text, "unix:") {
			listen[i] = temporaryName.ReplaceAllString(text, "")
		}
	}
	return unique(sorted(listen))
}

var temporaryName = regexp.MustCompile(`\.\d+\.tmp$`)

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// haproxyProxies lists HAProxy processes with their threads. A master is no
// worker: it is named by the workers that it started.
func (f *Finder) haproxyProxies() []Proxy {
	masters := make(map[int]*haproxyProcess)
	for pid, p := range f.known {
		if h, ok := p.watched.(*haproxyProcess); ok && h.master {
			masters[pid] = h
		}
	}
	groups := make(map[int]*Proxy)
	for pid, p := range f.known {
		h, ok := p.watched.(*haproxyProcess)
		if !ok || h.master || len(h.threads) == 0 || len(h.listen) == 0 && !h.stopping {
			continue
		}
		leader, id, master := h, pid, 0
		if m := masters[h.parent]; m != nil {
			leader, id, master = m, h.parent, h.parent
		}
		if groups[id] == nil {
			groups[id] = leader.proxy()
		}
		g := groups[id]
		g.Listen = unique(sorted(append(g.Listen, h.listen...)))
		g.StatsSock = unique(sorted(append(g.StatsSock, h.stats...)))
		g.Workers = append(g.Workers, h.workers(master)...)
	}
	proxies := make([]Proxy, 0, len(groups))
	for _, g := range groups {
		sortWorkers(g.Workers)
		proxies = append(proxies, *g)
	}
	return proxies
}

func (h *haproxyProcess) proxy() *Proxy {
	p := &Proxy{
		ID: fmt.Sprintf("haproxy-%d", h.pid), Kind: HAProxy, Master: h.pid, StartTime: h.start,
		Exe: h.path, ExeDeleted: h.deleted, Version: h.exe.version,
	}
	if len(h.conf) > 0 {
		p.ConfPath = h.conf[0]
	}
	return p
}

func (h *haproxyProcess) workers(master int) []Worker {
	workers := make([]Worker, 0, len(h.threads))
	for _, t := range h.threads {
		workers = append(workers, Worker{
			PID: h.pid, TID: t.tid, StartTime: h.start, Index: t.index, Master: master, Kind: HAProxy,
			Exiting: h.stopping, Started: true, Progress: t.progress, Exe: h.path,
		})
	}
	return workers
}

// haproxyConf returns the configuration files of the command line as absolute
// paths in the view of the process.
func haproxyConf(pid int) []string {
	args := cmdline(pid)
	cwd := readlink(procPath(pid, "cwd"))
	var files []string
	for i := 1; i < len(args); i++ {
		if args[i] == "-C" && i+1 < len(args) {
			cwd = absolute(cwd, args[i+1])
		}
	}
	for i := 1; i < len(args); i++ {
		switch {
		case args[i] == "-f" && i+1 < len(args):
			i++
			files = append(files, absolute(cwd, args[i]))
		case args[i] == "--":
			for _, file := range args[i+1:] {
				files = append(files, absolute(cwd, file))
			}
			return files
		}
	}
	return files
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// statsSockets returns where the runtime API listens, as its configuration
// says.
func statsSockets(pid, master int, conf []string) []string {
	var list []string
	for _, file := range conf {
		for _, text := range haproxyTexts(pid, master, file) {
			list = append(list, parseStatsSockets(text)...)
		}
	}
	return unique(sorted(list))
}

// parseStatsSockets finds the "stats socket ADDRESS" lines.
func parseStatsSockets(text []byte) []string {
	var list []string
	for _, line := range bytes.Split(text, []byte("\n")) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		f := strings.Fields(string(line))
		if len(f) >= 3 && f[0] == "stats" && f[1] == "socket" {
			list = append(list, socketAddress(strings.Trim(f[2], `"'`)))
		}
	}
	return list
}

// socketAddress writes an address of HAProxy's configuration the way the
// Finder writes listening sockets.
func socketAddress(text string) string {
	for _, prefix := range []string{"unix@", "uxst@"} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			return "unix:" + rest
		}
	}
	if strings.HasPrefix(text, "/") {
		return "unix:" + text
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, "ipv4@"), "ipv6@")
	host, port, ok := cutLast(text, ":")
	if _, err := strconv.Atoi(port); ok && err == nil && (host == "" || host == "*") {
		return "0.0.0.0:" + port
	}
	return text
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
