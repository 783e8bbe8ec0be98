package web

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spinguard/spinguard/web/api"
)

// maxShown is the length in bytes of one text on a page. Names come out of
// workers' memory; most are bounded where they are read.
const maxShown = 1000

// shown returns a text as one printable line of bounded length.
func shown(s string) string { return printable(s, maxShown) }

// printable cuts a text to n bytes, between two characters, and replaces what
// is not UTF-8, would steer a terminal, or turns the direction of a text.
func printable(s string, n int) string {
	end := ""
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s, end = s[:n], "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s) + end
}

func shownAll(list ...*string) {
	for _, s := range list {
		*s = shown(*s)
	}
}

func shownWorker(w api.WorkerStatus) api.WorkerStatus {
	shownAll(&w.Proxy, &w.Kind, &w.Verdict, &w.Reason, &w.Request, &w.Upstream, &w.Version, &w.Incident)
	return w
}

// shownQuarantines is for pages: its ids are those of links, and stay whole.
func shownQuarantines(list []api.Quarantine) []api.Quarantine {
	for i := range list {
		q := &list[i]
		shownAll(&q.Proxy, &q.Upstream, &q.Version, &q.Peer, &q.Route, &q.Server, &q.By, &q.Reason, &q.Incident, &q.Origin)
	}
	return list
}

func shownStatus(s api.Status) api.Status {
	shownAll(&s.Version, &s.Node, &s.Mode, &s.Sampler)
	s.Proxies = slices.Clone(s.Proxies)
	for i := range s.Proxies {
		shownAll(&s.Proxies[i].Name)
	}
	return s
}

func shownEvents(list []api.Event) []api.Event {
	for i := range list {
		shownAll(&list[i].Kind, &list[i].Proxy, &list[i].Incident, &list[i].Text)
	}
	return list
}
