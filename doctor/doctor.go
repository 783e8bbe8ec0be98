// Package doctor says what this host lacks for the agent, and which of its
// settings will hurt a load balancer, each with the number found and the
// remedy. It only reads.
package doctor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Level is how bad a finding is.
type Level string

// The levels. A host with a Fail can't be guarded as it should.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is the outcome of one check.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Found  string `json:"found"`            // with its number
	Why    string `json:"why,omitempty"`    // it matters
	Remedy string `json:"remedy,omitempty"` // what to do about it
}

// Host is where the checks read; tests point it at recorded files.
type Host struct {
	Root string // in front of /proc and /sys
}

func (h Host) read(path string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(h.Root, path))
	return strings.TrimSpace(string(text)), err == nil
}

func (h Host) number(path string) (int, bool) {
	text, ok := h.read(path)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}
