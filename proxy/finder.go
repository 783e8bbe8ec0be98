package proxy

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/spinguard/spinguard/profiler/procmem"
)

const (
	// A new pid may still be the shell that is about to execute a proxy: it
	// is looked at again in its first scans.
	youngScans = 3
	// After that every pid is looked at again once in so many scans, since a
	// process may execute something else at any time.
	recheckEvery = 16
)

// Finder keeps track of the proxies on this host. One goroutine may use it;
// the caller closes it.
type Finder struct {
	pids   *numbers
	births births
	scans  int
	still  int  // scans since the last in which something had started or ended
	asked  bool // whether something has, since the last scan, with this answer
	none   bool
	exes   map[exeKey]*exe
	known  map[int]*process
	names  names
	errs   []error
	warned map[int]bool // pids whose error was reported once
}

// process is one pid that was seen.
type process struct {
	seen, last int // scan of the first and of the latest sight
	key        exeKey
	exe        *exe // nil: no executable
	watched    watched
}

// watched is a process that is a proxy or a part of one.
type watched interface {
	// refresh reads what may have changed; an error means that the process
	// has ended or is no longer what it was.
	refresh() error
	close()
}

// NewFinder returns a Finder on /proc.
func NewFinder() (*Finder, error) {
	pids, err := openNumbers("/proc")
	if err != nil {
		return nil, err
	}
	return &Finder{
		pids: pids, births: openBirths(), exes: make(map[exeKey]*exe), known: make(map[int]*process),
		names: names{}, warned: make(map[int]bool),
	}, nil
}

// Close releases what the Finder holds open.
func (f *Finder) Close() {
	for pid := range f.known {
		f.forget(pid)
	}
	f.pids.close()
	f.births.close()
}

// Scan looks at all processes and returns the proxies sorted by ID. It costs
// little for pids that it has seen before, so it may run every second. What
// could not be read of single processes is in the joined error, once for each;
// the proxies are valid nevertheless.
func (f *Finder) Scan() ([]Proxy, error) {
	none := f.noBirths()
	f.asked = false
	f.scans++
	if f.still++; !none {
		f.still = 0
	}
	f.errs = f.errs[:0]
	if f.scans%recheckEvery != 0 && none {
		for pid := range f.known {
			f.visit(pid)
		}
	} else if err := f.list(); err != nil {
		return nil, err
	}
	f.sweepExes()
	return f.assemble(), errors.Join(f.errs...)
}

// Rests says, at the price of one small read, that a scan would hardly find
// anything new: no process has started or ended, and none is young.
func (f *Finder) Rests() bool { return f.noBirths() && f.still > youngScans }

// noBirths says that no process has started or ended since the last scan.
func (f *Finder) noBirths() bool {
	if none := f.births.none(); !f.asked {
		f.asked, f.none = true, none
	} else {
		f.none = f.none && none
	}
	return f.none
}

// list brings all pids up to date.
func (f *Finder) list() error {
	pids, err := f.pids.list()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		f.visit(pid)
	}
	for pid, p := range f.known {
		if p.last != f.scans {
			f.forget(pid)
		}
	}
	return nil
}

// visit brings one pid up to date.
func (f *Finder) visit(pid int) {
	p := f.known[pid]
	if p == nil {
		p = &process{seen: f.scans}
		f.known[pid] = p
	}
	p.last = f.scans
	if p.watched != nil {
		if p.watched.refresh() == nil {
			return
		}
		p.watched.close()
		*p = process{seen: f.scans, last: f.scans}
	}
	if f.scans-p.seen >= youngScans && (f.scans+pid)%recheckEvery != 0 {
		return
	}
	f.classify(pid, p)
}

// classify finds out what a pid runs, at the price of one stat if it runs what
// it ran before.
func (f *Finder) classify(pid int, p *process) {
	key, err := statExe(pid)
	if err != nil {
		p.exe = nil
		return
	}
	if p.exe == nil || p.key != key {
		p.key = key
		if p.exe = f.exes[key]; p.exe == nil {
			if p.exe, err = readExe(pid); err != nil {
				p.exe = nil
				return
			}
			f.exes[key] = p.exe
		}
	}
	if p.exe.kind == "" {
		return
	}
	if p.watched, err = watch(pid, p.exe); err != nil {
		p.watched = nil
		f.report(pid, err)
	}
}

func watch(pid int, e *exe) (watched, error) {
	switch e.kind {
	case Nginx:
		return watchNginx(pid, e)
	case HAProxy:
		return watchHAProxy(pid, e)
	}
	return watchGo(pid, e)
}

func (f *Finder) report(pid int, err error) {
	// Processes end while they are looked at; that is no error.
	if f.warned[pid] || errors.Is(err, procmem.ErrGone) {
		return
	}
	f.warned[pid] = true
	f.errs = append(f.errs, fmt.Errorf("pid %d: %w", pid, err))
}

func (f *Finder) forget(pid int) {
	if p := f.known[pid]; p != nil && p.watched != nil {
		p.watched.close()
	}
	delete(f.known, pid)
	delete(f.warned, pid)
}

// sweepExes drops verdicts that nobody uses, now and then: hosts that build
// software run thousands of executables a day.
func (f *Finder) sweepExes() {
	if f.scans%256 != 0 {
		return
	}
	used := make(map[exeKey]bool, len(f.exes))
	for _, p := range f.known {
		used[p.key] = true
	}
	for key := range f.exes {
		if !used[key] {
			delete(f.exes, key)
		}
	}
}

// assemble groups what is watched into proxies.
func (f *Finder) assemble() []Proxy {
	proxies := f.nginxProxies()
	proxies = append(proxies, f.haproxyProxies()...)
	proxies = append(proxies, f.goProxies()...)
	sort.Slice(proxies, func(i, j int) bool {
		a, b := proxies[i], proxies[j]
		if a.Kind != b.Kind {
			return a.Kind < b.Kind
		}
		return a.Master < b.Master
	})
	for i := range proxies {
		proxies[i].clean()
	}
	f.names.give(proxies)
	return proxies
}

// clean makes text of foreign processes valid UTF-8 of bounded length, since
// it goes into metrics and JSON.
func (p *Proxy) clean() {
	for _, text := range []*string{&p.Exe, &p.Prefix, &p.ConfPath, &p.Version} {
		*text = cleanText(*text)
	}
	for _, list := range [][]string{p.Listen, p.StatsSock} {
		for i := range list {
			list[i] = cleanText(list[i])
		}
	}
}

func cleanText(s string) string {
	const limit = 1024
	return strings.ToValidUTF8(s[:min(len(s), limit)], "?")
}

func sortWorkers(ws []Worker) {
	sort.Slice(ws, func(i, j int) bool {
		a, b := ws[i], ws[j]
		if a.Index != b.Index {
			return a.Index < b.Index
		}
		if a.PID != b.PID {
			return a.PID < b.PID
		}
		return a.TID < b.TID
	})
}
