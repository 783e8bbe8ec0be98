package drill

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Command(t.Context(), IO{Out: &out, Err: &err}, args)
	return code, out.String(), err.String()
}

func TestCommandUsedWrongly(t *testing.T) {
	for _, tt := range []struct {
		args string
		want string
	}{
		{"", "Usage: spinguard drill"},
		{"nobody-knows", "nobody-knows is neither a scenario"},
		{"./gcd-nan", "./gcd-nan is neither a scenario"},
		{"/tmp", "/tmp holds no case.yaml"},
		{"gcd-nan --mode maybe", `mode "maybe" is neither enforce nor observe`},
		{"gcd-nan --runs 0", "--runs 0 is not between"},
		{"gcd-nan --tries 0", "--tries 0 is not between"},
		{"gcd-nan --what", "flag provided but not defined: -what"},
	} {
		code, out, err := command(t, strings.Fields(tt.args)...)
		if code != 2 || !strings.Contains(err, tt.want) || out != "" {
			t.Errorf("drill %s: code %d, stdout %q, stderr %q; want 2 and %s", tt.args, code, out, err, tt.want)
		}
	}
}

func TestPlainFilesBesideCasesAreSkipped(t *testing.T) {
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "README.md"), filepath.Join(dir, "shop")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	kept, skipped := withoutFiles([]string{file, folder, "gcd-nan"})
	if !slices.Equal(kept, []string{folder, "gcd-nan"}) || !slices.Equal(skipped, []string{file}) {
		t.Errorf("kept %q, skipped %q", kept, skipped)
	}
	// The folder without a case.yaml is still a mistake.
	code, _, stderr := command(t, file, folder)
	if code != 2 || strings.Count(stderr, "README.md is a plain file") != 1 || !strings.Contains(stderr, "shop holds no case.yaml") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	if code, _, stderr = command(t, file); code != 2 || !strings.Contains(stderr, "neither a scenario") {
		t.Errorf("only a file: code %d, stderr %q", code, stderr)
	}
}

func TestCommandHelp(t *testing.T) {
	code, out, _ := command(t, "--help")
	if code != 0 || !strings.Contains(out, "gcd-nan-storm") || !strings.Contains(out, "case:gcd-nan") {
		t.Errorf("code %d, stdout %q", code, out)
	}
}

func TestNameWinsOverFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("stopped", 0o755); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(goodCase, "name: shop", "name: mine", 1)
	if err := os.WriteFile(filepath.Join("stopped", caseFile), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]string{"stopped": "stopped", "./stopped": "mine", "stopped/": "mine"} {
		sc, err := Find(arg)
		if err != nil || sc.Case.Name != want {
			t.Errorf("Find(%s): %v, %v, want %s", arg, sc, err, want)
		}
	}
}

func TestCommandPrintsOneObjectPerRun(t *testing.T) {
	need(t, "nginx")
	dir := t.TempDir()
	code, out, stderr := command(t, "os-execute", "--mode", "none", "--json", "--out", dir, "--runs", "2")
	if code != 0 || stderr != "" {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %q", len(lines), out)
	}
	for i, want := range []string{"os-execute", "os-execute-2"} {
		var r Result
		if err := json.Unmarshal([]byte(lines[i]), &r); err != nil {
			t.Fatal(err)
		}
		if r.Name != "os-execute" || !r.Passed || r.Out != filepath.Join(dir, want) {
			t.Errorf("run %d: %+v", i+1, r)
		}
		if kept, err := os.ReadFile(filepath.Join(r.Out, "result.json")); err != nil || strings.TrimSpace(string(kept)) != lines[i] {
			t.Errorf("run %d: result.json is %q, %v", i+1, kept, err)
		}
	}
}

func TestTries(t *testing.T) {
	for _, tt := range []struct {
		tries  int
		passes string // one letter for each run that would be
		runs   int
	}{
		{0, "ny", 1},
		{1, "ny", 1},
		{2, "yn", 1},
		{2, "ny", 2},
		{3, "nnny", 3},
	} {
		n := 0
		all, err := untilPassed(tt.tries, func() (Result, error) {
			n++
			return Result{Passed: tt.passes[n-1] == 'y'}, nil
		})
		if err != nil || len(all) != tt.runs || all[len(all)-1].Passed != (tt.passes[tt.runs-1] == 'y') {
			t.Errorf("%d tries of %s: %d runs, %+v, %v", tt.tries, tt.passes, n, all, err)
		}
	}
	all, err := untilPassed(3, func() (Result, error) { return Result{}, ErrUsage })
	if len(all) != 0 || !errors.Is(err, ErrUsage) {
		t.Errorf("a drill that can't be run: %v, %v", all, err)
	}
}

func TestTable(t *testing.T) {
	sc, c, rec := healthyTrial()
	rec.problems = []string{"something went wrong"}
	res := judge(sc, c, ModeEnforce, rec)
	res.Out, res.Seconds = "/out/gcd-nan", 12.34
	var b bytes.Buffer
	s := series{stdio: IO{Out: &b}}
	s.line(Line{Kind: "prepare", MS: -1, Text: "starting"})
	s.line(Line{Kind: "confirmed", MS: 312, Text: "runaway"})
	s.table(&res)
	golden(t, "table.txt", b.String())
	s.stdio.Colour = true
	b.Reset()
	s.table(&res)
	if !strings.Contains(b.String(), "\x1b[31mFAILED\x1b[0m") {
		t.Errorf("no colours on a terminal: %q", b.String())
	}
}

func TestGroups(t *testing.T) {
	list, err := findAll([]string{"rails", "cases", "stopped"})
	if err != nil || len(list) != 5+21+1 {
		t.Errorf("%d scenarios, %v", len(list), err)
	}
}

func TestFreshDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "x")
	for _, want := range []string{dir, dir + "-2", dir + "-3"} {
		if got, err := freshDir(dir); err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestStallLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.log")
	lines := `not JSON
{"msg":"verdict","pid":1}
{"msg":"stall","pid":1,"at":"2026-07-13T22:51:59Z","ms":150}
{"msg":"stall","pid":2,"at":"2026-07-13T22:52:01Z","ms":320,"request":"GET /report","frames":["rounds (work.lua:6)"]}
`
	if err := os.WriteFile(file, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := stallLog{file}.read(zero)
	if err != nil || len(got) != 1 || got[0].MS != 320 || got[0].PID != 2 || !got[0].At.Equal(zero.Add(time.Second)) {
		t.Errorf("got %+v, %v", got, err)
	}
}
