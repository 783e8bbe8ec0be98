// Command spinguard watches HTTP proxies, keeps the evidence when one of their
// workers is stuck, and replaces it. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/term"

	"github.com/spinguard/spinguard/watchdog"
)

// version is set by the linker.
var version = "unknown"

// env is what a command may touch of the world; tests bring their own.
type env struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	terminal       bool // stdout is one: redrawing and paging are welcome
	colour         bool // and so are colours
}

// errUsage means that the command line was wrong: exit code 2.
var errUsage = errors.New("usage")

// errUsageSaid is errUsage when everything was said already.
var errUsageSaid = errors.New("used wrongly")

// errSilent means that everything was said already: exit code 1.
var errSilent = errors.New("failed")

func main() {
	watchdog.SelfTestChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	terminal := term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("TERM") != "dumb"
	out := &output{File: os.Stdout}
	e := env{
		ctx: ctx, stdin: os.Stdin, stdout: out, stderr: os.Stderr, getenv: os.Getenv,
		terminal: terminal, colour: terminal && os.Getenv("NO_COLOR") == "",
	}
	err := run(e, os.Args[1:])
	if err == nil {
		err = out.failed
	}
	code := exitCode(e, err)
	stop()
	os.Exit(code)
}

// output is where commands print. It keeps the first error, such as that of a
// full disk: half a list must not pass for the whole.
type output struct {
	*os.File
	failed error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil && o.failed == nil {
		o.failed = err
	}
	return n, err
}

// exitCode says an error and turns it into the exit code: 0 done, 1 failed, 2
// used wrongly.
func exitCode(e env, err error) int {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintf(e.stderr, "spinguard: %v\nTry: spinguard --help\n", err)
		return 2
	case errors.Is(err, errUsageSaid):
		return 2
	case errors.Is(err, errSilent):
		return 1
	}
	fmt.Fprintf(e.stderr, "spinguard: %v\n", err)
	return 1
}

// command is one row of the command table. Nouns read, verbs change.
type command struct {
	name, args, does string
	run              func(env, []string) error
	hidden           bool
}

func commands() []command {
	return []command{
		{name: "agent", args: "[--config FILE]", does: "watch the proxies of this host", run: runAgent},
		{name: "workers", args: "[--watch] [--json]", does: "list the workers and what the agent says of each", run: runWorkers},
		{name: "capture", args: "--pid PID --seconds S -o FILE", does: "take a profile of a process now", run: runCapture},
		{name: "flamegraph", args: "IN [--base FILE] -o FILE", does: "render a pprof or folded profile, or a difference", run: runFlamegraph},
		{name: "incidents", args: "[show ID | export ID] [--json]", does: "list what happened, or tell one incident", run: runIncidents},
		{name: "quarantine", args: "[list | add | lift] [--json]", does: "see and change what is refused", run: runQuarantine},
		{name: "drill", args: "NAME|DIR... [--mode enforce|observe]", does: "replay a fault on a private proxy and judge the outcome", run: runDrill},
		{name: "doctor", args: "[--config FILE] [--json]", does: "say what this host lacks and what will hurt, with the remedy", run: runDoctor},
		{name: "completion", args: "bash|zsh", does: "print the completion for a shell", run: runCompletion},
		{name: "manual", does: "print the manual page", run: runManual, hidden: true},
		{name: "version", does: "print the version", run: runVersion},
	}
}

// run carries out one command line.
func run(e env, args []string) error {
	if len(args) == 0 {
		usage(e.stderr)
		return fmt.Errorf("%w: a command is missing", errUsage)
	}
	if slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		usage(e.stdout)
		return nil
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(e, args[1:])
		}
	}
	return fmt.Errorf("%w: there is no command %q", errUsage, args[0])
}

func usage(w io.Writer) {
	fmt.Fprint(w, "Spinguard finds stuck workers of nginx, OpenResty and HAProxy, keeps the evidence, and replaces them.\n\n")
	for _, c := range commands() {
		if !c.hidden {
			fmt.Fprintf(w, "  spinguard %-11s %-38s %s\n", c.name, c.args, c.does)
		}
	}
	fmt.Fprint(w, "\nspinguard COMMAND --help tells more, with examples.\n")
}

func runVersion(e env, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: version takes no arguments", errUsage)
	}
	fmt.Fprintf(e.stdout, "spinguard %s\n", version)
	return nil
}
