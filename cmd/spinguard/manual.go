package main

import (
	"fmt"
	"io"
	"strings"
)

// runManual prints the manual page. The package and `make install` use it.
func runManual(e env, args []string) error {
	f := newFlags(e, "manual", "", "Prints the manual page, as roff.", "  spinguard manual | man -l -\n")
	if _, err := f.parse(args, 0, 0); err != nil {
		return err
	}
	writeManual(e.stdout)
	return nil
}

func writeManual(w io.Writer) {
	fmt.Fprintf(w, ".TH SPINGUARD 8 \"\" \"Spinguard %s\" \"System administration\"\n", roff(version))
	fmt.Fprint(w, ".SH NAME\nspinguard \\- finds stuck workers of HTTP proxies, keeps the evidence, replaces them\n.SH SYNOPSIS\n")
	for _, c := range shown() {
		fmt.Fprintf(w, ".B spinguard %s\n%s\n.br\n", c.name, roff(c.args))
	}
	fmt.Fprint(w, ".SH DESCRIPTION\nThe agent samples the workers of nginx, OpenResty and HAProxy with eBPF. When one no longer turns its event loop, it keeps the request, "+
		"the stack with its values, and the configuration that it came from. In mode enforce it has the balancer refuse that configuration, and replaces the worker.\n"+
		".SH COMMANDS\n")
	for _, c := range shown() {
		fmt.Fprintf(w, ".SS %s\n%s.\n", c.name, roff(c.does))
		if help := c.helpText(); help != "" {
			fmt.Fprintf(w, ".PP\n.nf\n%s.fi\n", roff(help))
		}
	}
	fmt.Fprint(w, ".SH EXIT STATUS\n0: done. 1: failed. 2: used wrongly.\n.SH ENVIRONMENT\n.TP\n.B SPINGUARD_SOCKET\nsocket of the agent, where it is not the default one\n"+
		".TP\n.B SPINGUARD_TOKEN\nread by the agent: what a client must present over TCP\n.TP\n.B PAGER\nshows a long incident on a terminal\n.TP\n.B NO_COLOR\nif set, no colours\n"+
		".SH FILES\n.TP\n.I /etc/spinguard/agent.yaml\nconfiguration\n.TP\n.I /var/lib/spinguard/incidents\nincidents, a folder each\n.TP\n.I /run/spinguard\nsocket of the agent, ledgers of the proxies\n")
}

// roff protects a text from being taken for requests and escapes.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\t", "    ").Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
