package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
)

// flags is a flag set whose help tells what the command does and how it looks
// in use, and whose errors are usage errors.
type flags struct {
	*flag.FlagSet
	env env
}

func newFlags(e env, name, args, does, examples string) flags {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {
		fmt.Fprintf(e.stdout, "spinguard %s %s\n\n%s\n", name, args, does)
		any := false
		set.VisitAll(func(*flag.Flag) { any = true })
		if any {
			fmt.Fprint(e.stdout, "\nOptions:\n")
			set.SetOutput(e.stdout)
			set.PrintDefaults()
			set.SetOutput(io.Discard)
		}
		fmt.Fprintf(e.stdout, "\nExamples:\n%s", examples)
	}
	return flags{set, e}
}

// parse reads options and arguments in any order and returns the arguments.
func (f flags) parse(args []string, least, most int) ([]string, error) {
	var rest []string
	for {
		if err := f.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, fmt.Errorf("%w of %s: %v", errUsage, f.Name(), err)
		}
		if f.NArg() == 0 {
			break
		}
		rest = append(rest, f.Arg(0))
		args = f.Args()[1:]
	}
	if len(rest) < least || (most >= 0 && len(rest) > most) {
		return nil, fmt.Errorf("%w of %s: %d arguments; see spinguard %s --help", errUsage, f.Name(), len(rest), f.Name())
	}
	return rest, nil
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
