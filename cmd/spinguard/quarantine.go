package main

import (
	"bytes"
	"fmt"
	"time"

	"github.com/spinguard/spinguard/web/api"
	"github.com/spinguard/spinguard/web/client"
)

func runQuarantine(e env, args []string) error {
	f := newFlags(e, "quarantine", "[list | add | lift ID] [--json]",
		"Shows and changes the ledger: what the balancers refuse, and until when. A manual word always wins.",
		"  spinguard quarantine\n  spinguard quarantine add --upstream shop --version 2 --for 10m --reason 'bad weights'\n  spinguard quarantine lift q-0123456789abcdef --reason 'fixed in version 3'\n")
	asJSON := f.Bool("json", false, "print JSON")
	var r api.QuarantineRequest
	f.StringVar(&r.Proxy, "proxy", "", "`NAME` of the proxy, where there are several")
	f.StringVar(&r.Upstream, "upstream", "", "`NAME` of the upstream")
	f.StringVar(&r.Version, "version", "", "refuse this `VERSION` of it")
	f.StringVar(&r.Peer, "peer", "", "refuse this peer, `HOST:PORT`")
	f.StringVar(&r.Route, "route", "", "refuse this `ROUTE`, such as GET /export")
	f.StringVar(&r.Server, "server", "", "take this `SERVER` of a HAProxy backend (--upstream) out of it")
	f.StringVar(&r.Reason, "reason", "", "`TEXT` for those who come after you; required to add and lift")
	length := f.Duration("for", 0, "how long (default: quarantine_base of the agent)")
	socket := f.socketFlag()
	rest, err := f.parse(args, 0, 2)
	if err != nil {
		return err
	}
	r.Seconds = length.Seconds()
	c := client.New(*socket)
	defer c.Close()
	switch {
	case len(rest) == 0, len(rest) == 1 && rest[0] == "list":
		return listQuarantines(e, c, *asJSON)
	case len(rest) == 1 && rest[0] == "add":
		return addQuarantine(e, c, r, *asJSON)
	case len(rest) == 2 && rest[0] == "lift":
		if r.Reason == "" {
			return fmt.Errorf("%w of quarantine lift: --reason TEXT is missing", errUsage)
		}
		return c.Lift(e.ctx, rest[1], r.Reason)
	}
	return fmt.Errorf("%w of quarantine: %q; see spinguard quarantine --help", errUsage, rest)
}

func listQuarantines(e env, c *client.Client, asJSON bool) error {
	list, err := c.Quarantines(e.ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(e.stdout, list)
	}
	if len(list) == 0 {
		fmt.Fprintln(e.stdout, "nothing is quarantined")
		return nil
	}
	// What is cut at 80 columns is what can best be missed.
	rows := [][]string{{"ID", "ENDS IN", "UPSTREAM", "WHAT", "PROXY", "REASON"}}
	for _, q := range list {
		rows = append(rows, []string{q.ID, time.Until(q.Until).Round(time.Second).String(), dash(q.Upstream), what(q), q.Proxy, q.Reason})
	}
	var text bytes.Buffer
	table(&text, rows)
	return e.show(e.fit(text.String()))
}

func what(q api.Quarantine) string {
	switch {
	case q.Version != "":
		return "version " + q.Version
	case q.Server != "":
		return "server " + q.Server
	case q.Peer != "":
		return "peer " + q.Peer
	}
	return "route " + q.Route
}

func addQuarantine(e env, c *client.Client, r api.QuarantineRequest, asJSON bool) error {
	if r.Reason == "" {
		return fmt.Errorf("%w of quarantine add: --reason TEXT is missing", errUsage)
	}
	q, err := c.Add(e.ctx, r)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(e.stdout, q)
	}
	fmt.Fprintf(e.stdout, "%s: %s of %s, until %s\n", q.ID, what(q), q.Upstream, q.Until.Local().Format(time.DateTime))
	return nil
}
