// Package doctor says what this host lacks for the agent, and which of its
// settings will hurt a load balancer, each with the number found and the
// remedy. It only reads.
package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/symbol"
	"github.com/spinguard/spinguard/proxy"
)

// Level is how bad a finding is.
type Level string

// The levels. A host with a Fail can't be guarded as it should.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is the outcome of one check.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Found  string `json:"found"`            // with its number
	Why    string `json:"why,omitempty"`    // it matters
	Remedy string `json:"remedy,omitempty"` // what to do about it
}

// Host is where the checks read; tests point it at recorded files.
type Host struct {
	Root string // in front of /proc and /sys
}

func (h Host) read(path string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(h.Root, path))
	return strings.TrimSpace(string(text)), err == nil
}

func (h Host) number(path string) (int, bool) {
	text, ok := h.read(path)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// Sampler checks whether the sampler can be loaded here.
func Sampler() Finding {
	s, err := bpf.Open(49)
	if err != nil {
		return Finding{Check: "sampler", Level: Fail, Found: err.Error(), Why: "workers stuck on a CPU can't be seen", Remedy: "see the message"}
	}
	defer func() { _ = s.Close() }()
	return Finding{Check: "sampler", Level: OK, Found: "loaded and attached"}
}

// Kernel checks the settings of the kernel that hurt load balancers.
func (h Host) Kernel() []Finding {
	var list []Finding
	for _, check := range []func() (Finding, bool){h.release, h.btf, h.somaxconn, h.synBacklog, h.portRange, h.recycle, h.conntrack} {
		if f, ok := check(); ok {
			list = append(list, f)
		}
	}
	return list
}

func (h Host) release() (Finding, bool) {
	text, ok := h.read("/proc/sys/kernel/osrelease")
	f := Finding{Check: "kernel", Level: OK, Found: text}
	var major, minor int
	if n, _ := fmt.Sscanf(text, "%d.%d", &major, &minor); n == 2 && (major < 5 || major == 5 && minor < 8) {
		f.Level, f.Why, f.Remedy = Fail, "the sampler needs a ring buffer, which came with 5.8", "use a newer kernel"
	}
	return f, ok
}

func (h Host) btf() (Finding, bool) {
	if _, err := os.Stat(filepath.Join(h.Root, "/sys/kernel/btf/vmlinux")); err != nil {
		return Finding{Check: "BTF", Level: Fail, Found: "none", Why: "the sampler finds kernel fields by it", Remedy: "use a kernel built with CONFIG_DEBUG_INFO_BTF=y"}, true
	}
	return Finding{Check: "BTF", Level: OK, Found: "/sys/kernel/btf/vmlinux"}, true
}

func (h Host) somaxconn() (Finding, bool) {
	n, ok := h.number("/proc/sys/net/core/somaxconn")
	f := Finding{Check: "net.core.somaxconn", Level: OK, Found: strconv.Itoa(n)}
	if n < 511 {
		f.Level, f.Why, f.Remedy = Warn, "nginx asks for a listen queue of 511; the kernel cuts it, and a short stall drops connections", "sysctl net.core.somaxconn=4096"
	}
	return f, ok
}

func (h Host) synBacklog() (Finding, bool) {
	n, ok := h.number("/proc/sys/net/ipv4/tcp_max_syn_backlog")
	f := Finding{Check: "net.ipv4.tcp_max_syn_backlog", Level: OK, Found: strconv.Itoa(n)}
	if n < 512 {
		f.Level, f.Why, f.Remedy = Warn, "handshakes beyond it are dropped in silence", "sysctl net.ipv4.tcp_max_syn_backlog=4096"
	}
	return f, ok
}

func (h Host) portRange() (Finding, bool) {
	text, ok := h.read("/proc/sys/net/ipv4/ip_local_port_range")
	var low, high int
	if n, _ := fmt.Sscan(text, &low, &high); n != 2 {
		return Finding{}, false
	}
	f := Finding{Check: "net.ipv4.ip_local_port_range", Level: OK, Found: fmt.Sprintf("%d ports (%d to %d)", high-low+1, low, high)}
	if high-low < 20_000 {
		f.Level, f.Why, f.Remedy = Warn, "so many connections to one backend address, then connects fail", "sysctl net.ipv4.ip_local_port_range='10240 65000'"
	}
	return f, ok
}

func (h Host) recycle() (Finding, bool) {
	n, ok := h.number("/proc/sys/net/ipv4/tcp_tw_recycle")
	f := Finding{Check: "net.ipv4.tcp_tw_recycle", Level: OK, Found: strconv.Itoa(n)}
	if n != 0 {
		f.Level, f.Why, f.Remedy = Warn, "clients behind one NAT address lose connections", "sysctl net.ipv4.tcp_tw_recycle=0"
	}
	return f, ok
}

func (h Host) conntrack() (Finding, bool) {
	most, ok := h.number("/proc/sys/net/netfilter/nf_conntrack_max")
	used, _ := h.number("/proc/sys/net/netfilter/nf_conntrack_count")
	f := Finding{Check: "net.netfilter.nf_conntrack_max", Level: OK, Found: fmt.Sprintf("%d of %d in use", used, most)}
	if most > 0 && used*10 > most*8 {
		f.Level, f.Why, f.Remedy = Warn, "a full table drops new connections", "raise net.netfilter.nf_conntrack_max, or exempt the proxy's traffic (NOTRACK)"
	}
	return f, ok
}

// Proxies checks each proxy that runs: what was found of it, and whether
// evidence will work.
func Proxies() []Finding {
	finder, err := proxy.NewFinder()
	if err != nil {
		return []Finding{{Check: "proxies", Level: Fail, Found: err.Error(), Remedy: "run as root"}}
	}
	defer finder.Close()
	found, _ := finder.Scan() // what could be read
	if len(found) == 0 {
		return []Finding{{Check: "proxies", Level: Warn, Found: "none", Why: "there is nothing to watch yet", Remedy: "start nginx, OpenResty or HAProxy; the agent finds it within a second"}}
	}
	cache := symbol.NewCache(64)
	var list []Finding
	for _, p := range found {
		list = append(list, describe(p, cache)...)
	}
	return list
}

func describe(p proxy.Proxy, cache *symbol.Cache) []Finding {
	list := []Finding{{Check: p.Name, Level: OK, Found: fmt.Sprintf("%s, master %d, %d workers", p.Version, p.Master, len(p.Workers))}}
	if p.ExeDeleted {
		list = append(list, Finding{Check: p.Name, Level: Warn, Found: "its binary was replaced since it started", Why: "a respawned worker still runs the old one", Remedy: "reload by binary upgrade (USR2) or restart"})
	}
	if len(p.Workers) == 0 {
		return list
	}
	w := p.Workers[0]
	if w.Progress.Size == 0 && p.Kind != proxy.Go {
		list = append(list, Finding{Check: p.Name, Level: Fail, Found: "no progress word", Why: "its stalls can't be told from work", Remedy: "report the build: " + p.Version})
	}
	process, err := profiler.Open(w.PID, cache)
	if err != nil {
		return append(list, Finding{Check: p.Name, Level: Fail, Found: err.Error(), Why: "no evidence can be taken", Remedy: "run as root"})
	}
	defer func() { _ = process.Close() }()
	if p.Kind == proxy.Nginx && process.LuaWatch().Global == 0 {
		return append(list, Finding{Check: p.Name, Level: OK, Found: "no LuaJIT VM: native evidence only"})
	}
	if p.Kind == proxy.Nginx {
		list = append(list, Finding{Check: p.Name, Level: OK, Found: "LuaJIT found: Lua stacks and values work"})
	}
	return append(list, limits(p, w)...)
}

// limits compares the file handles of a worker with what it may need.
func limits(p proxy.Proxy, w proxy.Worker) []Finding {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", w.PID))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		if !ok {
			continue
		}
		soft, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			return nil
		}
		f := Finding{Check: p.Name + " file handles", Level: OK, Found: fmt.Sprintf("%d a worker", soft)}
		if soft < 4096 {
			f.Level, f.Why, f.Remedy = Warn, "a proxied request takes two; at the limit accept and connect fail and servers flap", "worker_rlimit_nofile 65536; in nginx.conf (or LimitNOFILE=)"
		}
		return []Finding{f}
	}
	return nil
}
