package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/doctor"
	"github.com/spinguard/spinguard/drill"
)

// call runs one command line and returns its output and exit code.
func call(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	e := env{ctx: context.Background(), stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }}
	code = exitCode(e, run(e, args))
	return out.String(), errs.String(), code
}

func TestHelpShowsEveryCommandWithExamples(t *testing.T) {
	out, _, code := call(t, "--help")
	if code != 0 {
		t.Fatalf("exit code %d of --help", code)
	}
	for _, c := range shown() {
		if !strings.Contains(out, "spinguard "+c.name) {
			t.Errorf("--help does not name %s", c.name)
		}
		if c.name == "version" || c.name == "drill" {
			continue
		}
		help, _, code := call(t, c.name, "--help")
		if code != 0 || !strings.Contains(help, "Examples:\n  spinguard "+c.name) {
			t.Errorf("%s --help: exit code %d, text %q", c.name, code, help)
		}
	}
}

func TestWrongUseIsExitCode2(t *testing.T) {
	for _, args := range [][]string{
		{}, {"nonsense"}, {"agent", "extra"}, {"workers", "--nonsense"}, {"capture"}, {"capture", "--pid", "1"},
		{"capture", "--pid", "1", "--seconds", "-3", "-o", "x.svg"}, {"capture", "--pid", "1", "--rate", "0", "-o", "x.svg"}, {"flamegraph"}, {"flamegraph", "in.pb.gz"},
		{"incidents", "show"}, {"quarantine", "add", "--upstream", "shop"}, {"quarantine", "lift", "q-1"}, {"version", "x"}, {"drill"},
	} {
		_, stderr, code := call(t, args...)
		if code != 2 || stderr == "" {
			t.Errorf("%q: exit code %d, stderr %q; want 2 and a word", args, code, stderr)
		}
	}
}

func TestFailureIsExitCode1WithARemedy(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "agent.sock")
	for _, args := range [][]string{
		{"workers", "--socket", missing}, {"incidents", "--socket", missing}, {"quarantine", "--socket", missing},
	} {
		_, stderr, code := call(t, args...)
		if code != 1 || !strings.Contains(stderr, "systemctl start spinguard") {
			t.Errorf("%q: exit code %d, stderr %q", args, code, stderr)
		}
	}
	if _, stderr, code := call(t, "capture", "--pid", "4194304", "-o", filepath.Join(t.TempDir(), "x.svg")); code != 1 || !strings.Contains(stderr, "no process 4194304") {
		t.Errorf("capture of no process: exit code %d, %q", code, stderr)
	}
	// What can't be written is said at once, not after the hour.
	for _, out := range []string{filepath.Join(t.TempDir(), "x.pdf"), filepath.Join(t.TempDir(), "none", "x.svg")} {
		if _, stderr, code := call(t, "capture", "--pid", "1", "--seconds", "3600", "-o", out); code != 1 || !strings.Contains(stderr, out) {
			t.Errorf("capture to %s: exit code %d, %q", out, code, stderr)
		}
	}
	if _, stderr, code := call(t, "agent", "--config", missing); code != 1 || !strings.Contains(stderr, missing) {
		t.Errorf("agent without its configuration: exit code %d, %q", code, stderr)
	}
}

func TestFlamegraphRendersFoldedText(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.folded"), filepath.Join(dir, "out.svg")
	if err := os.WriteFile(in, []byte("main;gcd 3\nmain;balance 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := call(t, "flamegraph", in, "-o", out); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	svg, err := os.ReadFile(out)
	if err != nil || !bytes.Contains(svg, []byte("gcd")) {
		t.Errorf("%d bytes of SVG, %v; want gcd in it", len(svg), err)
	}
}

func TestErrorsThatWereSaidAreNotSaidAgain(t *testing.T) {
	var errs bytes.Buffer
	e := env{stderr: &errs}
	if code := exitCode(e, errSilent); code != 1 || errs.Len() > 0 {
		t.Errorf("exit code %d, stderr %q", code, errs.String())
	}
	if code := exitCode(e, errors.New("x")); code != 1 || !strings.Contains(errs.String(), "x") {
		t.Errorf("exit code %d, stderr %q", code, errs.String())
	}
}

func TestDrillNamesItsScenarios(t *testing.T) {
	_, stderr, _ := call(t, "drill")
	for _, name := range drill.Names() {
		if !strings.Contains(stderr, name) {
			t.Errorf("drill without arguments does not name %s: %q", name, stderr)
		}
	}
}

// What could not be printed whole is a failure.
func TestAFullDiskIsSaid(t *testing.T) {
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd := exec.Command(bin, "version")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &said
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "no space left") {
		t.Errorf("%v, %q", err, said.String())
	}
}

// What is no file is written to, and not replaced by one: a pipe here, and as
// root it would be a device.
func TestExportIntoAPipe(t *testing.T) {
	socket, inc := serveOne(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan []byte, 1)
	go func() {
		r, err := os.Open(pipe)
		if err != nil {
			t.Error(err)
		}
		text, _ := io.ReadAll(r)
		got <- text
	}()
	if _, said, code := call(t, "incidents", "export", inc.ID, "-o", pipe, "--socket", socket); code != 0 {
		t.Fatal(said)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Fatalf("the pipe is now %v, %v", info.Mode(), err)
	}
	if text := <-got; !bytes.HasPrefix(text, []byte("\x1f\x8b")) {
		t.Errorf("%d bytes that are no archive", len(text))
	}
}

// A broken configuration is said once, with its line.
func TestDoctorOfABrokenConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte("mode: observe\nlisen: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said, _ := checkConfig(file)
	if said.Level != doctor.Fail || said.Found != file+": line 2: lisen: no such key here" {
		t.Errorf("%+v", said)
	}
}
