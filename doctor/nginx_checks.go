package doctor

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/doctor/nginxconf"
)

// nginxCheck walks over one configuration.
type nginxCheck struct {
	name        string
	limits      Limits
	connections int            // worker_connections
	upstreams   map[string]int // servers of each upstream block
	shutdown    bool           // worker_shutdown_timeout is set
	found       []Finding
}

// inherited are settings of outer blocks that hold until they are set again.
type inherited struct{ tries, noRetry bool }

func (c *nginxCheck) warn(check, found, why, remedy string) {
	if len(c.found) < 100 {
		c.found = append(c.found, Finding{Check: c.name + " " + check, Level: Warn, Found: found, Why: why, Remedy: remedy})
	}
}

func at(d nginxconf.Directive) string { return fmt.Sprintf("%s line %d", d.File, d.Line) }

func number(args []string) (int, bool) {
	if len(args) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(args[0])
	return n, err == nil
}

// collect notes what other directives depend on.
func (c *nginxCheck) collect(list []nginxconf.Directive) {
	for _, d := range list {
		switch d.Name {
		case "worker_connections":
			if n, ok := number(d.Args); ok {
				c.connections = n
			}
		case "worker_shutdown_timeout":
			c.shutdown = true
		case "upstream":
			c.upstream(d)
		}
		c.collect(d.Block)
	}
}

// upstream counts the servers, and looks at settings of a lone one.
func (c *nginxCheck) upstream(d nginxconf.Directive) {
	var servers []nginxconf.Directive
	for _, in := range d.Block {
		if in.Name == "server" {
			servers = append(servers, in)
		}
		if strings.HasPrefix(in.Name, "balancer_by_lua") {
			return // its servers are chosen elsewhere
		}
	}
	if len(d.Args) != 1 {
		return
	}
	c.upstreams[d.Args[0]] = len(servers)
	if len(servers) != 1 {
		return
	}
	for _, arg := range servers[0].Args {
		if strings.HasPrefix(arg, "max_fails=") && arg != "max_fails=0" || strings.HasPrefix(arg, "fail_timeout=") {
			c.warn("max_fails", fmt.Sprintf("%s with 1 server in upstream %s (%s)", arg, d.Args[0], at(servers[0])),
				"with one server it does nothing: the server is never taken out, and every request waits for its timeout", "add a second server, or drop the setting and lower proxy_connect_timeout")
			return
		}
	}
}

// walk looks at single directives.
func (c *nginxCheck) walk(list []nginxconf.Directive, in inherited) {
	for _, d := range list {
		switch d.Name {
		case "proxy_next_upstream_tries":
			if n, ok := number(d.Args); ok {
				in.tries = n > 0
			}
		case "proxy_next_upstream":
			in.noRetry = len(d.Args) == 1 && d.Args[0] == "off"
		}
	}
	for _, d := range list {
		switch d.Name {
		case "listen":
			c.listen(d)
		case "lua_code_cache":
			if len(d.Args) == 1 && d.Args[0] == "off" {
				c.warn("lua_code_cache", "off ("+at(d)+")", "every request compiles its Lua anew in a new VM: slow, and no stack has a history", "lua_code_cache on;")
			}
		case "proxy_pass":
			c.pass(d, in)
		}
		c.walk(d.Block, in)
	}
}

func (c *nginxCheck) listen(d nginxconf.Directive) {
	backlog := 511
	for _, arg := range d.Args {
		if v, ok := strings.CutPrefix(arg, "backlog="); ok {
			if n, err := strconv.Atoi(v); err == nil {
				backlog = n
			}
		}
		if arg == "reuseport" {
			c.warn("reuseport", fmt.Sprintf("listen %s (%s)", strings.Join(d.Args, " "), at(d)),
				"each worker has a queue of its own: while one is stuck, its share of all new connections hangs, and no other worker takes them", "run the agent in mode enforce, or drop reuseport")
		}
	}
	if c.limits.Somaxconn > 0 && backlog > c.limits.Somaxconn {
		c.warn("listen backlog", fmt.Sprintf("%d against net.core.somaxconn=%d (%s)", backlog, c.limits.Somaxconn, at(d)),
			"the kernel cuts the queue without a word; a short stall then drops connections", fmt.Sprintf("sysctl net.core.somaxconn=%d, then reload nginx", max(4096, backlog)))
	}
}

// pass looks at retries over an upstream with several servers.
func (c *nginxCheck) pass(d nginxconf.Directive, in inherited) {
	if len(d.Args) != 1 || in.tries || in.noRetry {
		return
	}
	u, err := url.Parse(d.Args[0])
	if err != nil || c.upstreams[u.Host] < 2 {
		return
	}
	c.warn("proxy_next_upstream_tries", fmt.Sprintf("unlimited over %d servers of %s (%s)", c.upstreams[u.Host], u.Host, at(d)),
		"a request that kills or hangs one server is sent to all of them, one after the other", "proxy_next_upstream_tries 2; and proxy_next_upstream_timeout")
}

// whole looks at what concerns the whole proxy.
func (c *nginxCheck) whole() {
	if n := c.limits.OpenFiles; n > 0 && n < 2*c.connections {
		c.warn("file handles", fmt.Sprintf("%d a worker against worker_connections %d", n, c.connections),
			"a proxied request takes two handles, and files and logs take more: at the limit accept and connect fail, and servers flap",
			fmt.Sprintf("worker_rlimit_nofile %d; in nginx.conf", 2*c.connections+1024))
	}
	if !c.shutdown {
		c.warn("worker_shutdown_timeout", "not set", "after a reload old workers stay as long as one connection does, with the old configuration and its memory", "worker_shutdown_timeout 60s;")
	}
}
