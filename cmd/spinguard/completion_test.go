package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// complete asks bash what it would offer for a line.
func complete(t *testing.T, script string, words ...string) []string {
	t.Helper()
	cmd := exec.Command("bash", append([]string{"-c", `. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _spinguard; printf '%s\n' "${COMPREPLY[@]}"`, script}, words...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("bash: %v\n%s", err, out)
	}
	return strings.Fields(string(out))
}

func TestBashCompletes(t *testing.T) {
	text, _, code := call(t, "completion", "bash")
	dir := t.TempDir()
	script := filepath.Join(dir, "spinguard.bash")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil || code != 0 {
		t.Fatal(err, code)
	}
	// An agent that knows one incident.
	if err := os.WriteFile(filepath.Join(dir, "spinguard"), []byte("#!/bin/sh\necho '[{\"id\":\"20261130T015749.123Z-a1b2c3\",\"x\":1}]'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"spinguard", "wor"}, "workers"},
		{[]string{"spinguard", "workers", "--w"}, "--watch"},
		{[]string{"spinguard", "quarantine", "li"}, "lift"},
		{[]string{"spinguard", "incidents", "show", ""}, "20261130T015749.123Z-a1b2c3"},
		{[]string{"spinguard", "drill", "gcd-nan-s"}, "gcd-nan-storm"},
		{[]string{"spinguard", "doctor", "--config", dir + "/spinguard.b"}, script},
		{[]string{"spinguard", "flamegraph", dir + "/spinguard.b"}, script},
		{[]string{"spinguard", "flamegraph", "--b"}, "--base"},
	} {
		if got := complete(t, script, test.words...); !slices.Contains(got, test.want) {
			t.Errorf("%q: %q, want %q in it", test.words, got, test.want)
		}
	}
}

func TestZshReadsItsCompletion(t *testing.T) {
	zsh := need(t, "zsh")
	text, _, _ := call(t, "completion", "zsh")
	script := filepath.Join(t.TempDir(), "_spinguard")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(zsh, "-n", script).CombinedOutput(); err != nil {
		t.Errorf("zsh -n: %v\n%s", err, out)
	}
}

// Every command and option is in the manual page, and man takes it.
func TestManual(t *testing.T) {
	text, _, code := call(t, "manual")
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, c := range shown() {
		if !strings.Contains(text, "\n.SS "+c.name+"\n") {
			t.Errorf("%s is not in the manual", c.name)
		}
		for _, o := range c.options() {
			if !strings.Contains(text, `\-`+roff(o.name)) {
				t.Errorf("%s -%s is not in the manual", c.name, o.name)
			}
		}
	}
	if n := len(command{name: "quarantine", run: runQuarantine}.options()); n < 8 {
		t.Errorf("%d options of quarantine found in its help", n)
	}
	groff := need(t, "groff")
	cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
}
