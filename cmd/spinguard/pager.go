package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"
)

// show prints a text, through a pager if it is longer than the terminal. In a
// pipe or file it is printed as it is.
func (e env) show(text string) error {
	if e.terminal {
		_, height, err := term.GetSize(int(os.Stdout.Fd()))
		if err == nil && strings.Count(text, "\n") >= height && e.page(text) {
			return nil
		}
	}
	_, err := fmt.Fprint(e.stdout, text)
	return err
}

// fit cuts the lines of a table to the width of the terminal, where a line that
// wraps would spoil the columns. In a pipe or file nothing is cut.
func (e env) fit(text string) string {
	width := e.width()
	if width == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = cut(lines[i], width)
	}
	return strings.Join(lines, "\n")
}

// page hands the text to PAGER, or to less, and says whether that worked.
// PAGER may have arguments, so a shell reads it, as man and git do.
func (e env) page(text string) bool {
	pager := e.getenv("PAGER")
	if pager == "" {
		if _, err := exec.LookPath("less"); err != nil {
			return false
		}
		pager = "less"
	}
	cmd := exec.CommandContext(e.ctx, "sh", "-c", pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewBufferString(text), e.stdout, e.stderr
	if out, ok := e.stdout.(*output); ok {
		cmd.Stdout = out.File // a pager wants the terminal itself
	}
	cmd.Env = os.Environ()
	if e.getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX") // colours; ends where all fits; leaves the text on the screen
	}
	return cmd.Run() == nil
}
