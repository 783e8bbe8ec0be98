package main

import (
	"fmt"

	"github.com/spinguard/spinguard/flamegraph"
)

func runFlamegraph(e env, args []string) error {
	f := newFlags(e, "flamegraph", "IN [--base FILE] -o FILE",
		"Renders a pprof or folded profile. The ending of FILE chooses the format:\n.svg .html .folded .speedscope.json .pb.gz",
		"  spinguard flamegraph profile.pb.gz -o stuck.svg\n  spinguard flamegraph now.pb.gz --base before.pb.gz -o difference.html\n")
	out := f.String("o", "", "write to this `FILE`")
	base := f.String("base", "", "show the difference to this profile")
	rest, err := f.parse(args, 1, 1)
	if err != nil {
		return err
	}
	if *out == "" {
		return fmt.Errorf("%w of flamegraph: -o FILE is missing", errUsage)
	}
	if _, err := flamegraph.Convert(rest[0], *base, *out); err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "wrote %s\n", *out)
	return nil
}
