package drill

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// IO is where a command prints.
type IO struct {
	Out, Err io.Writer
	Colour   bool // Out is a terminal that shows colours
}

const usage = `Usage: spinguard drill NAME|DIR... [flags]

Starts a private proxy, injects a fault, and tells whether the agent found and
healed it. Exit 0 only if everything expected happened, 1 if not, 2 if used wrongly.

Scenarios:
%s
"cases" stands for all cases, "faults" for those where something is wrong, or nearly, "negatives" for those where nothing may be done and
all else that only looks bad, "rails" for all scenarios of rails, "nights" for all nights and their twins.
A DIR holds a case.yaml; plain files beside such folders are skipped, so DIR/* works. A name wins over a folder; write ./NAME for the folder.

Flags:
`

// Command runs "spinguard drill". It returns the exit code: 0 all passed, 1
// not, 2 used wrongly.
func Command(ctx context.Context, stdio IO, args []string) int {
	set := flag.NewFlagSet("drill", flag.ContinueOnError)
	set.SetOutput(stdio.Err)
	opt := Options{}
	set.StringVar(&opt.Mode, "mode", ModeEnforce, "`enforce` or observe")
	set.StringVar(&opt.Binary, "agent", "", "start this spinguard `program` as the agent (default: this very program)")
	out := set.String("out", "", "keep results below this `folder` (default: a fresh one)")
	asJSON := set.Bool("json", false, "print one JSON object per run, and nothing else")
	span := set.Duration("for", 0, "run the whole list again until this `time` is over")
	oneAgent := set.Bool("one-agent", false, "keep one agent for all runs, and tell how its memory went")
	runs := set.Int("runs", 1, "run the whole list this many times")
	tries := set.Int("tries", 1, "run a scenario that fails again, so often in all; the last run counts, and the failures stay in the output")
	set.Usage = func() {} // told below, where it is known whether it was asked for
	names, err := parseMixed(set, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		help(set, stdio.Out)
		return 0
	case err != nil:
		return 2
	case len(names) == 0:
		help(set, stdio.Err)
		return 2
	case *runs < 1 || *runs > 10_000:
		fmt.Fprintf(stdio.Err, "drill: --runs %d is not between 1 and 10000\n", *runs)
		return 2
	case *tries < 1 || *tries > 100:
		fmt.Fprintf(stdio.Err, "drill: --tries %d is not between 1 and 100\n", *tries)
		return 2
	}
	names, skipped := withoutFiles(names)
	for _, n := range skipped {
		fmt.Fprintf(stdio.Err, "drill: %s is a plain file, not a case folder: skipped\n", n)
	}
	scenarios, err := findAll(names)
	if err == nil {
		_, err = opt.checked()
	}
	if err != nil {
		fmt.Fprintln(stdio.Err, "drill:", err)
		return 2
	}
	if *oneAgent {
		if err := canShareAgent(scenarios, opt); err != nil {
			fmt.Fprintln(stdio.Err, "drill:", err)
			return 2
		}
	}
	s := series{stdio: stdio, opt: opt, out: *out, json: *asJSON, span: *span, oneAgent: *oneAgent, tries: *tries}
	return s.run(ctx, scenarios, *runs)
}

// canShareAgent refuses what does not go with one agent for all.
func canShareAgent(list []*Scenario, opt Options) error {
	if opt.Mode == ModeNone {
		return errors.New("--one-agent does not go with --mode none")
	}
	for _, sc := range list {
		if sc.kill > 0 {
			return fmt.Errorf("--one-agent does not go with this list: %s kills its agent", sc.Case.Name)
		}
	}
	return nil
}

func help(set *flag.FlagSet, w io.Writer) {
	fmt.Fprintf(w, usage, list())
	set.SetOutput(w)
	set.PrintDefaults()
}

// parseMixed accepts flags before, between and after the names.
func parseMixed(set *flag.FlagSet, args []string) ([]string, error) {
	var names []string
	for {
		if err := set.Parse(args); err != nil {
			return nil, err
		}
		rest := set.Args()
		if len(rest) == 0 {
			return names, nil
		}
		if n := len(args) - len(rest); n > 0 && args[n-1] == "--" {
			return append(names, rest...), nil
		}
		names, args = append(names, rest[0]), rest[1:]
	}
}

// withoutFiles drops plain files among other names: DIR/* matches what lies
// beside the case folders too. Alone they are a mistake, which Find tells.
func withoutFiles(names []string) (kept, skipped []string) {
	for _, n := range names {
		if st, err := os.Stat(n); err == nil && st.Mode().IsRegular() && !slices.Contains(Names(), n) {
			skipped = append(skipped, n)
		} else {
			kept = append(kept, n)
		}
	}
	if len(kept) == 0 {
		return names, nil
	}
	return kept, skipped
}

func findAll(names []string) ([]*Scenario, error) {
	var out []*Scenario
	for _, n := range expand(names) {
		sc, err := Find(n)
		if err != nil {
			return nil, err
		}
		out = append(out, sc)
	}
	return out, nil
}

// Find returns the scenario of that name, or reads the case folder. A name
// wins over a folder of the same name unless it contains a slash.
func Find(name string) (*Scenario, error) {
	if !strings.Contains(name, "/") {
		if sc, err := builtIn(name); sc != nil || err != nil {
			return sc, err
		}
	}
	if st, err := os.Stat(name); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("%w: %s is neither a scenario (%s) nor a case folder", ErrUsage, name,
			strings.Join(Names(), ", "))
	}
	if _, err := os.Stat(filepath.Join(name, caseFile)); err != nil {
		return nil, fmt.Errorf("%w: %s holds no %s", ErrUsage, name, caseFile)
	}
	return FromDir(name)
}
