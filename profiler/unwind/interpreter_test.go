package unwind

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

const luaLibrary = "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"

// luaScript visits many ways into and out of the interpreter's block.
const luaScript = `
io.write("ready\n") io.flush()
local floor, ceil, fmod = math.floor, math.ceil, math.fmod
local mt = setmetatable({}, {__index = function(t, k) return k end, __lt = function() return true end,
  __concat = function(a, b) return "c" end, __call = function(self, x) return x end})
local function gcd(a, b) if b == 0 then return a end return gcd(b, a % b) end
local gen = coroutine.wrap(function() local i = 0 while true do i = i + 1 coroutine.yield(i) end end)
local acc = 0
while true do
  for i = 1, 50 do
    acc = acc + floor(i / 3) + ceil(i / 7) + i % 7 + (i / 2) % 3 + fmod(i, 5) + 2 ^ (i % 3) + gcd(i * 6, 15)
  end
  local t = {5, 3, 9, 1, 7}
  table.sort(t, function(a, b) return a < b end)
  local s = string.gsub("hello", "l", function(c) return c .. acc end)
  pcall(error, "x")
  pcall(function() local x = nil; return x.y end)
  acc = acc + gen() + mt.abc:len() + #(mt .. "d") + mt(1) + select("#", unpack(t)) + tonumber("12")
  if mt < mt then acc = acc + 1 end
  for k, v in pairs(t) do acc = acc + v end
  for k, v in ipairs(t) do acc = acc - v end
  local str = tostring(acc) .. "x" .. #s
  acc = acc % 1000
end`

func luaHost(t testing.TB) string {
	t.Helper()
	if _, err := os.Stat(luaLibrary); err != nil {
		if os.Getenv("REQUIRE_BPF") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	out := filepath.Join(t.TempDir(), "luahost")
	text, err := exec.Command(need(t, "gcc"), "-O2", "-o", out, "testdata/luahost.c", luaLibrary).CombinedOutput()
	if err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	return out
}

// TestInterpreterEveryInstruction single-steps the interpreter. The block has
// one row of rules for everything; helpers like lj_vm_floor and the block's
// own prologues don't keep to it.
func TestInterpreterEveryInstruction(t *testing.T) {
	x := start(t, luaHost(t), "jit.off()"+luaScript)
	bad := map[string]int{}
	whole := 0
	const steps = 30000
	for range steps {
		x.step()
		frames, truncated := x.unwind.Unwind(x.registers(), x.process, nil)
		names := x.names(frames)
		i := slices.Index(names, "main")
		if truncated == "" && i > 1 && names[i-1] == "runs" && names[i-2] == "lua_pcall" {
			whole++
		} else if truncated == "" || names[0] != "_Unwind_RaiseException" {
			// Its last instruction jumps to a handler from a stack that
			// is the handler's already: that walk ends, and says so.
			bad[truncated+" "+strings.Join(names, " < ")]++
		}
	}
	t.Logf("%d of %d whole", whole, steps)
	report(t, bad)
}

func TestInterpreterRange(t *testing.T) {
	x := start(t, luaHost(t), luaScript)
	maps, err := procmem.ReadMaps(x.pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if !m.Exec {
			continue
		}
		start, end, ok := x.unwind.InterpreterRange(m)
		if want := strings.Contains(m.Path, "libluajit"); ok != want {
			t.Errorf("%s: interpreter found: %v, want %v", m.Path, ok, want)
		}
		if ok && (end-start < 8<<10 || end-start > 64<<10 || start < m.Start || end > m.End) {
			t.Errorf("interpreter at %#x-%#x in %#x-%#x", start, end, m.Start, m.End)
		}
	}
}
