package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/doctor/nginxconf"
)

func checkText(t *testing.T, text string, l Limits) []Finding {
	t.Helper()
	list, err := nginxconf.Parse(nginxconf.Reader{Read: func(string) ([]byte, error) { return []byte(text), nil }}, "/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	return CheckNginx("n", list, l)
}

// Each setting that hurts is found with its number, and its repair is not.
func TestNginxSettings(t *testing.T) {
	const calm = "worker_shutdown_timeout 60s; "
	enough := Limits{OpenFiles: 65536, Somaxconn: 4096}
	two := "http { upstream shop { server a:1; server b:1; } server { location / { proxy_pass http://shop/x; } } }"
	for _, test := range []struct {
		name, text, want string
		limits           Limits
	}{
		{"calm", calm + "events { worker_connections 1024; }", "", enough},
		{"handles", calm + "events { worker_connections 10240; }", "file handles: 1024 a worker against worker_connections 10240", Limits{OpenFiles: 1024}},
		{"handles by default", calm, "against worker_connections 512", Limits{OpenFiles: 1000}},
		{"backlog", calm + "http { server { listen 80 backlog=8192; } }", "listen backlog: 8192 against net.core.somaxconn=4096", enough},
		{"backlog by default", calm + "http { server { listen 80; } }", "511 against net.core.somaxconn=128", Limits{Somaxconn: 128}},
		{"backlog fits", calm + "http { server { listen 80; } }", "", enough},
		{"reuseport", calm + "http { server { listen 80 reuseport; } }", "reuseport: listen 80 reuseport (/nginx.conf line 1)", enough},
		{"tries", calm + two, "proxy_next_upstream_tries: unlimited over 2 servers of shop", enough},
		{"tries limited", calm + "http { proxy_next_upstream_tries 2; " + two[7:], "", enough},
		{"tries of 0", calm + "http { proxy_next_upstream_tries 0; " + two[7:], "unlimited", enough},
		{"no retries", calm + "http { proxy_next_upstream off; " + two[7:], "", enough},
		{"one server", calm + "http { upstream s { server a:1; } server { location / { proxy_pass http://s; } } }", "", enough},
		{"max_fails", calm + "http { upstream s { server a:1 max_fails=3; } }", "max_fails: max_fails=3 with 1 server in upstream s", enough},
		{"max_fails of 0", calm + "http { upstream s { server a:1 max_fails=0; } }", "", enough},
		{"max_fails with two", calm + "http { upstream s { server a:1 max_fails=3; server b:1; } }", "", enough},
		{"balancer", calm + "http { upstream s { server 0.0.0.1 max_fails=3; balancer_by_lua_block { x() } } }", "", enough},
		{"shutdown", "events {}", "worker_shutdown_timeout: not set", enough},
		{"lua", calm + "http { lua_code_cache off; }", "lua_code_cache: off", enough},
	} {
		found := checkText(t, test.text, test.limits)
		if test.want == "" {
			if len(found) > 0 {
				t.Errorf("%s: %+v, want nothing", test.name, found)
			}
			continue
		}
		if len(found) != 1 || !strings.Contains(found[0].Check+": "+found[0].Found, test.want) || found[0].Why == "" || found[0].Remedy == "" {
			t.Errorf("%s: %+v, want one with %q, why and remedy", test.name, found, test.want)
		}
	}
}

func TestFindingsAreBounded(t *testing.T) {
	if n := len(checkText(t, "http {"+strings.Repeat("server { listen 80 reuseport; }", 5000)+"}", Limits{})); n > 101 {
		t.Errorf("%d findings", n)
	}
}

// recorded makes a host of recorded files.
func recorded(t *testing.T, files map[string]string) Host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Host{Root: root}
}

func TestHostSettings(t *testing.T) {
	for _, test := range []struct {
		path, text, check string
		level             Level
		found             string
	}{
		{"/proc/sys/kernel/osrelease", "4.18.0-80.el8", "kernel", Fail, "4.18.0"},
		{"/proc/sys/kernel/osrelease", "6.1.0-13-amd64", "kernel", OK, "6.1.0"},
		{"/sys/kernel/security/lockdown", "none integrity [confidentiality]", "kernel lockdown", Fail, "confidentiality"},
		{"/sys/kernel/security/lockdown", "none [integrity] confidentiality", "kernel lockdown", OK, "integrity"},
		{"/proc/sys/kernel/yama/ptrace_scope", "3", "kernel.yama.ptrace_scope", Fail, "3"},
		{"/proc/sys/kernel/yama/ptrace_scope", "1", "kernel.yama.ptrace_scope", OK, "1"},
		{"/proc/sys/kernel/perf_event_max_sample_rate", "250", "kernel.perf_event_max_sample_rate", Warn, "250"},
		{"/proc/sys/kernel/perf_event_paranoid", "3", "kernel.perf_event_paranoid", Warn, "3"},
		{"/proc/sys/kernel/perf_event_paranoid", "2", "kernel.perf_event_paranoid", OK, "2"},
		{"/proc/self/status", "Name:\tx\nCapEff:\t000000c000080024", "capabilities", OK, "all 5"},
		{"/proc/self/status", "CapEff:\t0000004000080024", "capabilities", Fail, "CAP_BPF"},
		{"/proc/sys/net/core/somaxconn", "128", "net.core.somaxconn", Warn, "128"},
		{"/proc/sys/net/ipv4/tcp_max_syn_backlog", "128", "net.ipv4.tcp_max_syn_backlog", Warn, "128"},
		{"/proc/sys/net/ipv4/ip_local_port_range", "40000 50000", "net.ipv4.ip_local_port_range", Warn, "10001 ports"},
		{"/proc/sys/net/ipv4/tcp_tw_recycle", "1", "net.ipv4.tcp_tw_recycle", Warn, "1"},
	} {
		var f Finding
		for _, one := range recorded(t, map[string]string{test.path: test.text}).Kernel() {
			if one.Check == test.check {
				f = one
			}
		}
		if f.Level != test.level || !strings.Contains(f.Found, test.found) || (f.Level != OK) != (f.Remedy != "" && f.Why != "") {
			t.Errorf("%s = %q: %+v, want %s with %q", test.path, test.text, f, test.level, test.found)
		}
	}
}

func TestLibraryVersion(t *testing.T) {
	text, err := os.ReadFile("../balancer/lua/resty/spinguard/layout.lua")
	if err != nil {
		t.Fatal(err)
	}
	if f := libraryFinding("n", "layout.lua", text); f.Level != OK {
		t.Errorf("the library beside this agent: %+v", f)
	}
	if f := libraryFinding("n", "layout.lua", []byte(`_VERSION = "0.0.9"`)); f.Level != Warn || !strings.Contains(f.Found, "0.0.9") || !strings.Contains(f.Why, libraryVersion) {
		t.Errorf("an older library: %+v", f)
	}
}
