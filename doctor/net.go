package doctor

import (
	"fmt"
	"strconv"
)

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
