package proxy

import (
	"os/exec"
	"strconv"
	"testing"
)

// startTracer attaches a debugger until the test ends; it lets the worker run on.
func startTracer(t *testing.T, pid int) int {
	t.Helper()
	cmd := exec.Command(need(t, "gdb"), "-q", "-batch-silent", "-nx", "-ex", "set auto-solib-add off",
		"-ex", "attach "+strconv.Itoa(pid), "-ex", "shell sleep 20")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}
