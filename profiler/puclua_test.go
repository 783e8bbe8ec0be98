package profiler

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler/stack"
)

// An action that yields once, as every action does that talks to somebody, and
// then backtracks for minutes; and a fetch that loops in Lua itself, which
// HAProxy can't interrupt there.
const hangingLua = `
local shop = {}

local function gcd(a, b)
  while b ~= 0 do
    a, b = b, a % b
  end
  return a
end

function shop.match(text, pattern)
  return text:find(pattern)
end

core.register_action("slow", {"http-req"}, function(txn)
  core.yield()
  local found = shop.match(string.rep("a", 3000), ".-.-.-b")
  return found
end)

core.register_fetches("weigh", function(txn)
  local weight = gcd(12, 0 / 0)
  return weight
end)
`

const hangingConfig = `
global
  nbthread 1
  lua-load %[1]s/hang.lua
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend web
  bind %[2]s
  http-request lua.slow if { path /slow }
  http-request set-var(txn.w) lua.weigh() if { path /weigh }
  http-request return status 200
`

func hangHAProxy(t *testing.T, path string) (pid int) {
	t.Helper()
	if _, err := exec.LookPath("haproxy"); err != nil {
		missing(t, "haproxy")
	}
	dir, web := t.TempDir(), fmt.Sprint("127.0.0.1:", freePort(t))
	for name, text := range map[string]string{"hang.lua": hangingLua, "h.cfg": fmt.Sprintf(hangingConfig, dir, web)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("haproxy", "-db", "-f", filepath.Join(dir, "h.cfg"))
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 500 {
		if r, err := http.Get("http://" + web + "/"); err == nil {
			r.Body.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	c, err := net.Dial("tcp", web)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	return cmd.Process.Pid
}

// The Lua frames stand where HAProxy's machine frames ran them.
func TestLuaOfHAProxy(t *testing.T) {
	for path, want := range map[string][]string{
		"/slow":  {"builtin find", "match hang.lua:12", "function <hang.lua:15> hang.lua:17", "lua_resume", "run_poll_loop", "main"},
		"/weigh": {"gcd hang.lua:", "function <hang.lua:21> hang.lua:22", "lua_resume", "run_poll_loop", "main"},
	} {
		t.Run(path[1:], func(t *testing.T) {
			pid := hangHAProxy(t, path)
			s, p := openSampler(t), openProcess(t, pid)
			watch(t, s, p)
			good, inLua, bad := 0, 0, ""
			take(t, s, 40, aMinute, func(x bpf.Sample) {
				r := p.Understand(x)
				got := luaLines(r.Stack)
				if testing.Verbose() {
					t.Log(r.Stack.Truncated, strings.Join(got, " < "))
				}
				if !slices.ContainsFunc(got, func(l string) bool { return strings.Contains(l, "lua_resume") }) {
					return
				}
				inLua++
				if r.Stack.Truncated == "" && inOrder(got, want) {
					good++
				} else {
					bad = r.Stack.Truncated + "\n" + strings.Join(got, "\n")
				}
			})
			if inLua < 10 || good*10 < inLua*9 {
				t.Errorf("%d of %d samples in Lua are right; such as\n%s\nis not\n%s", good, inLua, bad, strings.Join(want, "\n"))
			}
		})
	}
}

func luaLines(s stack.Stack) (lines []string) {
	for _, f := range s.Frames {
		switch f.Kind {
		case stack.Lua:
			lines = append(lines, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
		case stack.Builtin:
			lines = append(lines, "builtin "+f.Function)
		default:
			lines = append(lines, f.Function)
		}
	}
	return lines
}

// inOrder says that each text is in a line, in this order.
func inOrder(lines, texts []string) bool {
	for _, line := range lines {
		if len(texts) > 0 && strings.Contains(line, texts[0]) {
			texts = texts[1:]
		}
	}
	return len(texts) == 0
}
