package watchdog

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/profiler/stack"
)

// tables reads Lua tables of a stuck process.
type tables interface {
	Table(addr uint64, limit int) []stack.Value
}

// Bounds of the search for a bad peer.
const (
	peersMax  = 256 // of one list
	tablesMax = 512 // read in all
)

// peerFinder looks through the tables that the Lua frames of a stuck picker
// hold for the peer whose weight is not a weight: half of the diagnosis.
type peerFinder struct {
	tables tables
	seen   map[uint64]bool
	best   string
	grade  int // how bad the best one's weight is
	text   string
}

// badPeer returns the address of the peer with the worst weight, and the
// weight as Lua has it. It is empty where no table looks like a bad peer.
func badPeer(s stack.Stack, t tables) (peer, weight string) {
	f := peerFinder{tables: t, seen: map[uint64]bool{}}
	for _, frame := range s.Frames {
		for _, v := range frame.Values {
			f.look(v, 2)
		}
		if f.grade > 0 {
			break // the frame nearest to the loop tells
		}
	}
	return f.best, f.text
}

// look reads a table; its own tables too, so deep.
func (f *peerFinder) look(v stack.Value, deep int) {
	if v.Addr == 0 || f.seen[v.Addr] || len(f.seen) >= tablesMax {
		return
	}
	f.seen[v.Addr] = true
	entries := f.tables.Table(v.Addr, peersMax)
	if address := addressOf(entries); address != "" {
		f.rate(address, entries)
		return
	}
	for _, e := range entries {
		if deep > 0 && e.Addr != 0 {
			f.look(e, deep-1)
		}
	}
}

func (f *peerFinder) rate(address string, entries []stack.Value) {
	for _, e := range entries {
		if e.Name != "weight" && e.Name != "w" {
			continue
		}
		if grade := weightGrade(e); grade > f.grade {
			f.best, f.grade, f.text = address, grade, e.Text
		}
	}
}

// weightGrade says how far a value is from a weight; 0: it is one.
func weightGrade(v stack.Value) int {
	if v.Type != "number" {
		return 4
	}
	w, err := strconv.ParseFloat(v.Text, 64)
	switch {
	case err != nil || w != w || w > 1e15:
		return 4
	case w < 0:
		return 3
	case w != float64(int64(w)):
		return 2
	case w > 65535:
		return 1
	}
	return 0
}

// addressOf returns the address of a table that looks like a peer: it has a
// host, or an address with its port.
func addressOf(entries []stack.Value) string {
	var host, port string
	for _, e := range entries {
		text := e.Text
		if s, err := strconv.Unquote(text); err == nil {
			text = s
		}
		switch strings.ToLower(e.Name) {
		case "host", "ip", "addr", "address", "server":
			if e.Type == "string" {
				host = cmp.Or(host, text)
			}
		case "port":
			port = text
		}
	}
	if host == "" || port == "" || strings.HasSuffix(host, ":"+port) {
		return host
	}
	return host + ":" + port
}
