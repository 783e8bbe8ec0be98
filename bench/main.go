// Command bench measures what Spinguard's profiles are worth and what they
// cost, beside other tools, in one run on the same private nginx. `make bench`
// runs it as root. Each table is printed with the method behind it. Absolute
// numbers belong to the machine and to the minute; compare only numbers of one
// run.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// options of one run.
type options struct {
	spinguard string        // the program that is measured
	slice     time.Duration // of each capture
	steady    time.Duration // of the agent's measurement
	rounds    int           // pairs of slices of the timer's cost
	runaways  int           // workers sent into a loop, one after the other
	recovers  int           // drills of a poisoned upstream

	hostPeriods int // of the big host
	hostPeriod  time.Duration
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == spinArgument {
		spin(os.Args[2])
	}
	var o options
	only := flag.String("only", "capture,steady,start,timer,detect,recover,host,page", "the tables to print")
	flag.StringVar(&o.spinguard, "spinguard", "bin/spinguard", "the `program` to measure")
	flag.DurationVar(&o.slice, "slice", 5*time.Second, "length of each capture")
	flag.DurationVar(&o.steady, "steady", 30*time.Second, "how long the agent is measured")
	flag.IntVar(&o.rounds, "rounds", 40, "rounds of the timer's cost")
	flag.IntVar(&o.runaways, "runaways", 200, "runaways to detect")
	flag.IntVar(&o.recovers, "recoveries", 20, "drills in which all four workers are stuck")
	flag.IntVar(&o.hostPeriods, "host-periods", 3, "periods in which the agent on a big host is measured")
	flag.DurationVar(&o.hostPeriod, "host-period", 20*time.Second, "length of each")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	tables := map[string]func(context.Context, options) error{"capture": captureTable, "steady": steadyTable, "start": startTable, "timer": timerTable,
		"detect": detectTable, "recover": recoverTable, "host": hostTable, "page": pageTable}
	for name := range strings.SplitSeq(*only, ",") {
		table := tables[name]
		if table == nil {
			fmt.Fprintf(os.Stderr, "bench: no table %q; there are %s\n", name, strings.Join(slices.Sorted(maps.Keys(tables)), ", "))
			os.Exit(2)
		}
		if err := table(ctx, o); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}
