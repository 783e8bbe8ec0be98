package doctor

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/spinguard/spinguard/doctor/nginxconf"
)

var update = flag.Bool("update", false, "write the golden files")

// What doctor says about quarantine, word by word.
func TestQuarantineFindings(t *testing.T) {
	const ledger, line = "/run/spinguard-nginx/ledger", "/etc/nginx/nginx.conf line 7"
	var b bytes.Buffer
	for _, test := range []struct {
		name string
		q    quarantineFacts
	}{
		{"ledger", quarantineFacts{lua: true, ledger: ledger, required: line}},
		{"ledger, file not read", quarantineFacts{lua: true, ledger: ledger, unread: true}},
		{"foreign ledger", quarantineFacts{lua: true, ledger: ledger, ledgerErr: errors.New("ledger: anybody may write it"), required: line}},
		{"required, not begun", quarantineFacts{lua: true, required: line}},
		{"not required", quarantineFacts{lua: true}},
		{"configuration unread", quarantineFacts{lua: true, unread: true}},
		{"culprits and hook", quarantineFacts{lua: true, ways: Ways{Culprits: true, Hook: true}}},
		{"culprits alone", quarantineFacts{lua: true, ways: Ways{Culprits: true}}},
		{"hook alone", quarantineFacts{lua: true, required: line, ways: Ways{Hook: true}}},
		{"no Lua", quarantineFacts{}},
	} {
		f := test.q.finding("n")
		fmt.Fprintf(&b, "# %s\n%s %s: %s\n  why: %s\n  remedy: %s\n", test.name, f.Level, f.Check, f.Found, f.Why, f.Remedy)
		if (f.Level == OK) != (f.Why == "" && f.Remedy == "") {
			t.Errorf("%s: %+v: a warning needs why and remedy, and only that", test.name, f)
		}
	}
	golden(t, "testdata/quarantine.golden", b.Bytes())
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %v; got\n%s", file, err, got)
	}
}

// files is a configuration in memory.
type files map[string]string

func (f files) reader() nginxconf.Reader {
	return nginxconf.Reader{Read: func(name string) ([]byte, error) {
		if text, ok := f[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}}
}

func (f files) parse(t *testing.T) []nginxconf.Directive {
	t.Helper()
	list, err := nginxconf.Parse(f.reader(), "/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestWhereTheLibraryIsRequired(t *testing.T) {
	for _, test := range []struct{ conf, want string }{
		{"http {\n init_by_lua_block { local s = require \"resty.spinguard\" }\n}", "/nginx.conf line 2"},
		{"http { init_by_lua_block { local s = { require(\"resty.spinguard\") } } }", "/nginx.conf line 1"},
		{"http { init_by_lua 'require(\"resty.spinguard\").init({})'; }", "/nginx.conf line 1"},
		{"http { init_by_lua_file lua/init.lua; }", "/nginx.conf line 1"},
		{"http { init_by_lua_file /other.lua; }", ""},
		{"http { init_by_lua_file /gone.lua; }", ""},
		{"http { init_by_lua_block {\n -- require \"resty.spinguard\"\n } }", ""},
		{"http { init_by_lua_block { require \"resty.spinguardian\" } }", ""},
		{"http { # require \"resty.spinguard\"\n }", ""},
		{"http { init_by_lua_block { require \"resty.core\" } }", ""},
	} {
		f := files{"/nginx.conf": test.conf, "/prefix/lua/init.lua": "local s = require 'resty.spinguard'", "/other.lua": "return 1"}
		if got := requiredAt(f.parse(t), f.reader(), "/prefix"); got != test.want {
			t.Errorf("%s: %q, want %q", test.conf, got, test.want)
		}
	}
}

func TestLuaPath(t *testing.T) {
	with := func(own ...string) []string { return append(own, defaultPath...) }
	for _, test := range []struct {
		set  string
		want []string
	}{
		{"", with()},
		{`lua_package_path "/a/?.lua;;";`, with("/a/?.lua")},
		{`lua_package_path '/a/?.lua;/b/?/init.lua';`, []string{"/a/?.lua", "/b/?/init.lua"}},
		{`lua_package_path "$prefix/lua/?.lua;${prefix}x/?.lua";`, []string{"/p//lua/?.lua", "/p/x/?.lua"}},
		{`lua_package_path "lua/?.lua";`, []string{"/cwd/lua/?.lua"}},
	} {
		f := files{"/nginx.conf": "http { " + test.set + " }"}
		if got := luaPath(f.parse(t), "/p", "/cwd"); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.set, got, test.want)
		}
	}
}

// The first of two libraries counts, as for Lua; one that is wanted and not
// there is told.
func TestLibraryOnThePath(t *testing.T) {
	f := files{"/old/resty/spinguard/layout.lua": `_VERSION = "0.0.9"`, "/new/resty/spinguard/layout.lua": `_VERSION = "` + libraryVersion + `"`}
	for _, test := range []struct {
		path  []string
		used  bool
		level Level
	}{
		{[]string{"/none/?.lua", "/new/?.lua", "/old/?.lua"}, true, OK},
		{[]string{"/old/?.lua", "/new/?.lua"}, true, Warn},
		{[]string{"/none/?.lua"}, true, Warn},
		{[]string{"/none/?.lua"}, false, OK},
	} {
		if got := library("n", f.reader(), test.path, test.used); got.Level != test.level || (got.Level != OK) != (got.Why != "" && got.Remedy != "") {
			t.Errorf("%v, used %v: %+v, want %s", test.path, test.used, got, test.level)
		}
	}
}

func TestCgroups(t *testing.T) {
	const v2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
	const v1 = "31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n32 23 0:28 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer"
	for _, test := range []struct {
		name, mounts, member string
		files                []string
		found                string
		level, throttling    Level
	}{
		{"v2", v2, "0::/system.slice/nginx.service", []string{"/sys/fs/cgroup/system.slice/nginx.service/cpu.stat", "/sys/fs/cgroup/cpu.stat"}, "v2", OK, OK},
		{"v1", v1, "4:cpu,cpuacct:/nginx", []string{"/sys/fs/cgroup/cpu/nginx/cpu.stat"}, "v1 cpu, v1 freezer", OK, OK},
		{"v1 of another controller", "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory", "4:cpu,cpuacct:/nginx", nil, "none mounted", Warn, Warn},
		{"files hidden", v2, "0::/../nginx", nil, "v2", OK, Warn},
		{"none", "", "0::/", nil, "none mounted", Warn, Warn},
	} {
		host := map[string]string{"/proc/self/mountinfo": test.mounts, "/proc/self/cgroup": "0::/", "/proc/42/cgroup": test.member}
		for _, f := range test.files {
			host[f] = "usage_usec 1"
		}
		h := recorded(t, host)
		f, ok := h.cgroups()
		if !ok || f.Level != test.level || f.Found != test.found || (f.Level != OK) != (f.Why != "" && f.Remedy != "") {
			t.Errorf("%s: %+v, want %s, %s", test.name, f, test.level, test.found)
		}
		if f := h.throttling("n", 42); len(f) != 1 || f[0].Level != test.throttling {
			t.Errorf("%s: %+v, want %s", test.name, f, test.throttling)
		}
	}
}
