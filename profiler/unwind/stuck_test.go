package unwind

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNginxStuck walks a stripped worker that loops in Lua for ever, at each
// instruction, compiled and interpreted. Here nobody tells the unwinder about
// traces.
func TestNginxStuck(t *testing.T) {
	nginx := need(t, "nginx")
	for _, mode := range []string{"on", "off"} {
		t.Run("jit "+mode, func(t *testing.T) {
			port, dir := freePort(t), t.TempDir()
			conf := write(t, "nginx.conf", fmt.Sprintf(`load_module modules/ndk_http_module.so;
load_module modules/ngx_http_lua_module.so;
daemon off; error_log stderr crit; pid %[1]s/pid; worker_processes 1; events {}
http { access_log off; client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s;
uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
server { listen 127.0.0.1:%[2]d; location / { content_by_lua_block {
  jit.%[3]s()
  local function gcd(a, b) if b == 0 then return a end return gcd(b, a %% b) end
  ngx.say(gcd(1, 0/0))
} } } }`, dir, port, mode))
			cmd := exec.Command(nginx, "-p", "/usr/share/nginx/", "-c", conf, "-e", "stderr")
			serve(t, cmd, port)
			worker := workerOf(t, cmd.Process.Pid)
			go func() {
				client := http.Client{Timeout: 60 * time.Second}
				if r, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", port)); err == nil {
					r.Body.Close()
				}
			}()
			observe(t, worker).running()
			x := attach(t, worker)
			walkStuck(t, x)
			if mode == "on" {
				walkTrace(t, x)
			}
		})
	}
}

func walkStuck(t *testing.T, x *target) {
	x.reach("ngx_http_lua_run_thread", "")
	bad := map[string]int{}
	whole, found := 0, map[Method]int{}
	const steps = 20000
	for range steps {
		x.step()
		frames, truncated := x.unwind.Unwind(x.registers(), x.process, nil)
		names := x.names(frames)
		found[frames[0].Found]++
		// A helper that the interpreter calls is a frame of its own.
		run := slices.Index(names, "ngx_http_lua_run_thread")
		if truncated == "" && (run == 1 || run == 2) &&
			slices.Contains(names, "ngx_process_events_and_timers") && names[len(names)-1] == "_start" {
			whole++
		} else {
			bad[truncated+" "+strings.Join(names, " < ")]++
		}
	}
	t.Logf("%d of %d whole, leaf by %v", whole, steps, found)
	report(t, bad)
}

// walkTrace tells the unwinder the frame size of the trace that runs, as the
// Lua side does, and wants the same stack as before, with all registers that
// the trace saved.
func walkTrace(t *testing.T, x *target) {
	frames, _ := x.unwind.Unwind(x.registers(), x.process, nil)
	want := x.names(frames)
	size := int(frames[0].CFA - frames[0].Registers.SP())
	asked := false
	code := func(pc uint64) (int, bool) {
		asked = asked || pc == frames[0].PC
		return size, true
	}
	for range 2000 {
		x.step()
		frames, truncated := x.unwind.Unwind(x.registers(), x.process, code)
		got := x.names(frames)
		if truncated != "" || frames[0].Found != JIT || !slices.Equal(got[1:], want[1:]) {
			t.Fatalf("leaf by %v: %v %q, want %v", frames[0].Found, got, truncated, want)
		}
		if frames[1].Registers.Known != amd64.kept {
			t.Fatalf("registers %#x are known below the trace", frames[1].Registers.Known)
		}
	}
	t.Logf("trace of %d bytes", size)
	if !asked {
		t.Error("the unwinder never asked for the trace")
	}
}
