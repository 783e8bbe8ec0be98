package balancer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const specConf = `
load_module MODULES/ndk_http_module.so;
load_module MODULES/ngx_http_lua_module.so;
daemon off;
pid DIR/nginx.pid;
error_log stderr notice;
events {}
http {
    lua_shared_dict spinguard 4m;
    lua_shared_dict small 12k;
    lua_package_path "LUA/?.lua;PEER/lib/?.lua;;";
    lua_package_cpath "PEER/?.so;;";
    init_by_lua_block {
        JIT
        CASES = NCASES
        local ok, t = pcall(require, "t.SPEC")
        if not ok then
            io.stderr:write("spec SPEC: ", tostring(t), "\n")
            os.exit(1)
        end
        io.stderr:write(t.checks, " checks, ", t.failures, " failures\n")
        os.exit(t.failures == 0 and t.checks > 0 and 0 or 1)
    }
    server { listen unix:DIR/never.sock; }
}
`

// cases is how often the four properties are tried: few times by hand; in CI
// so often that they make 100,000 cases, most of them with the JIT on.
func cases(jitOff bool) int {
	switch {
	case os.Getenv("REQUIRE_BPF") != "1":
		return 150
	case jitOff:
		return 5000
	}
	return 20000
}

// runSpec returns the last line of a spec.
func runSpec(t *testing.T, name, setup string, n int) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(specOutput(t, name, setup, n)), "\n")
	return lines[len(lines)-1]
}

// endless is when a spec is taken for one that does not end. In CI the longest
// one takes a minute or two.
const endless = 5 * time.Minute

// specOutput runs lua/t/NAME.lua under the LuaJIT of nginx.
func specOutput(t testing.TB, name, setup string, n int) string {
	t.Helper()
	need(t, "nginx", modules+"/ngx_http_lua_module.so")
	dir := t.TempDir()
	conf := strings.NewReplacer("MODULES", modules, "DIR", dir, "LUA", luaDir(t),
		"JIT", setup, "NCASES", fmt.Sprint(n), "SPEC", name, "PEER", os.Getenv("LUA_RESTY_BALANCER")).Replace(specConf)
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), endless)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nginx", "-p", dir, "-c", path, "-e", filepath.Join(dir, "error.log"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%s: killed after %v: a loop in it may not end", name, endless)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, out.String())
	}
	return out.String()
}

func TestPickerProperties(t *testing.T) {
	t.Run("jit", func(t *testing.T) {
		t.Parallel()
		t.Log(runSpec(t, "pickers", "", cases(false)))
	})
	t.Run("nojit", func(t *testing.T) {
		t.Parallel()
		t.Log(runSpec(t, "pickers", "jit.off()", cases(true)))
	})
}

// Sequences of publish, quarantine and pick are fewer than the other cases:
// each is twelve changes and three picks after each, in the whole library.
func TestSequences(t *testing.T) {
	for name, setup := range map[string]string{"jit": "", "nojit": "jit.off()"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(runSpec(t, "sequences", setup, max(200, cases(setup != "")/100)))
		})
	}
}

func TestPickersUnderChanges(t *testing.T) {
	for name, setup := range map[string]string{"jit": "", "nojit": "jit.off()"} {
		t.Run(name, func(t *testing.T) { t.Log(runSpec(t, "changes", setup, max(200, cases(setup != "")/100))) })
	}
}

func TestRings(t *testing.T) {
	for name, setup := range map[string]string{"jit": "", "nojit": "jit.off()"} {
		t.Run(name, func(t *testing.T) { t.Log(runSpec(t, "rings", setup, max(200, cases(setup != "")/100))) })
	}
}

func TestFatalInputs(t *testing.T) {
	for name, setup := range map[string]string{"jit": "", "nojit": "jit.off()"} {
		t.Run(name, func(t *testing.T) { t.Log(runSpec(t, "fatal", setup, 1)) })
	}
}

func TestLuaUnits(t *testing.T) { t.Log(runSpec(t, "units", "", 1)) }
