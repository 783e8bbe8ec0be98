package doctor

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/doctor/haproxyconf"
	"github.com/spinguard/spinguard/proxy"
)

// haproxySettings checks the settings of a HAProxy in its file, or the files of
// its directory.
func (h Host) haproxySettings(p proxy.Proxy) []Finding {
	if p.Kind != proxy.HAProxy || p.ConfPath == "" {
		return nil
	}
	files, err := haproxyFiles(p)
	var sections []haproxyconf.Section
	if err == nil {
		sections, err = haproxyconf.Parse(files...)
	}
	if err != nil {
		return []Finding{{Check: p.Name + " configuration", Level: Warn, Found: err.Error(), Why: "its settings can't be checked", Remedy: "haproxy -c -f FILE says whether it is whole"}}
	}
	handles := 0
	if len(p.Workers) > 0 {
		handles, _ = openFiles(p.Workers[0].PID)
	}
	somaxconn, _ := h.number("/proc/sys/net/core/somaxconn")
	return CheckHAProxy(p.Name, sections, Limits{OpenFiles: handles, Somaxconn: somaxconn, CPUs: h.cpus()})
}

// haproxyFiles reads the configuration below the root of the master: workers
// may have changed theirs.
func haproxyFiles(p proxy.Proxy) ([]haproxyconf.File, error) {
	r := rootReader(fmt.Sprintf("/proc/%d/root", p.Master))
	names := []string{p.ConfPath}
	if below := r.Glob(path.Join(p.ConfPath, "*.cfg")); len(below) > 0 {
		names = below
	}
	var list []haproxyconf.File
	for _, name := range names[:min(len(names), 64)] {
		text, err := r.Read(name)
		if os.IsNotExist(err) { // it entered a root of its own after it had read the file
			text, err = rootReader("/").Read(name)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, haproxyconf.File{Name: name, Text: text})
	}
	return list, nil
}

// cpus counts the CPUs that are online.
func (h Host) cpus() int {
	list, _ := filepath.Glob(filepath.Join(h.Root, "/sys/devices/system/cpu/cpu[0-9]*"))
	return len(list)
}

// CheckHAProxy returns what in a configuration will hurt, at most one finding a
// kind and place.
func CheckHAProxy(name string, sections []haproxyconf.Section, l Limits) []Finding {
	c := &haproxyCheck{name: name, limits: l}
	var global haproxyconf.Section // several sections are one
	for _, s := range sections {
		if s.Kind == "global" {
			global.File, global.Number = s.File, s.Number
			global.Lines = append(global.Lines, s.Lines...)
		}
	}
	c.global(global)
	for _, s := range sections {
		c.proxySection(s)
	}
	return c.found
}

type haproxyCheck struct {
	name   string
	limits Limits
	found  []Finding
}

func (c *haproxyCheck) warn(check, found, why, remedy string) {
	if len(c.found) < 100 {
		c.found = append(c.found, Finding{Check: c.name + " " + check, Level: Warn, Found: found, Why: why, Remedy: remedy})
	}
}

func where(l haproxyconf.Line) string { return fmt.Sprintf("%s line %d", l.File, l.Number) }

func numberOf(l haproxyconf.Line) int {
	if len(l.Words) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(l.Words[1])
	return n
}

// proxySection looks at a frontend, a backend or both in one.
func (c *haproxyCheck) proxySection(s haproxyconf.Section) {
	front, back := s.Kind == "frontend" || s.Kind == "listen", s.Kind == "backend" || s.Kind == "listen"
	if front {
		c.front(s)
	}
	if servers := s.All("server"); back && len(servers) > 0 {
		c.back(s, servers)
	}
}

func (c *haproxyCheck) front(s haproxyconf.Section) {
	c.timeouts(s, "client", "a client that says nothing keeps its connection for ever")
	if mode, _ := s.Get("mode"); len(mode.Words) > 1 && mode.Words[1] == "http" {
		_, request := s.Get("timeout", "http-request")
		if _, client := s.Get("timeout", "client"); client && !request {
			c.warn("timeout http-request", fmt.Sprintf("not set in %s %s", s.Kind, s.Name), "whoever sends a request byte by byte holds a connection as long as it likes", "timeout http-request 10s")
		}
	}
	for _, bind := range append(s.All("bind"), s.All("backlog")...) {
		backlog := 0
		if i := slices.Index(bind.Words, "backlog"); i >= 0 && i+1 < len(bind.Words) {
			backlog, _ = strconv.Atoi(bind.Words[i+1])
		}
		if c.limits.Somaxconn > 0 && backlog > c.limits.Somaxconn {
			c.warn("listen backlog", fmt.Sprintf("%d against net.core.somaxconn=%d (%s)", backlog, c.limits.Somaxconn, where(bind)),
				"the kernel cuts the queue without a word; a short stall then drops connections", fmt.Sprintf("sysctl net.core.somaxconn=%d, then reload HAProxy", backlog))
		}
	}
}

func (c *haproxyCheck) timeouts(s haproxyconf.Section, which, why string) {
	if _, ok := s.Get("timeout", which); !ok {
		c.warn("timeout "+which, fmt.Sprintf("not set in %s %s (%s line %d)", s.Kind, s.Name, s.File, s.Number), why, "timeout "+which+" 30s")
	}
}

func (c *haproxyCheck) back(s haproxyconf.Section, servers []haproxyconf.Line) {
	c.timeouts(s, "connect", "a server that is gone without a word holds its requests for minutes")
	c.timeouts(s, "server", "a server that hangs holds its requests, and their connections, for ever")
	if len(servers) < 2 {
		return
	}
	retries, tries := s.Get("retries")
	if _, ok := s.Get("option", "redispatch"); !ok && (!tries || numberOf(retries) > 0) {
		c.warn("option redispatch", fmt.Sprintf("not set over %d servers of %s %s", len(servers), s.Kind, s.Name),
			"a connect that fails is tried again at the same server, and the request fails although others are well", "option redispatch, with retries 3")
	}
	if tries && numberOf(retries) == 0 {
		c.warn("retries", fmt.Sprintf("0 over %d servers of %s %s (%s)", len(servers), s.Kind, s.Name, where(retries)), "one refused connect is an error for the client", "retries 3, with option redispatch")
	}
	if on, ok := s.Get("retry-on"); ok && slices.ContainsFunc(on.Words, func(w string) bool { return w == "all-retryable-errors" || w == "response-timeout" }) && numberOf(retries) > 3 {
		c.warn("retry-on", fmt.Sprintf("%s with retries %d (%s)", strings.Join(on.Words[1:], " "), numberOf(retries), where(on)), "a request that hangs one server is sent to all of them, one after the other", "retries 2")
	}
	unchecked := 0
	base, _ := s.Get("default-server")
	for _, server := range servers {
		if !slices.Contains(server.Words, "check") && !slices.Contains(server.Words, "track") && (!slices.Contains(base.Words, "check") || slices.Contains(server.Words, "no-check")) {
			unchecked++
		}
	}
	if unchecked > 0 {
		c.warn("check", fmt.Sprintf("%d of %d servers of %s %s are not checked", unchecked, len(servers), s.Kind, s.Name), "a dead server keeps its share of the requests", "default-server check")
	}
}
