package doctor

import (
	"fmt"
	"slices"

	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/symbol"
	"github.com/spinguard/spinguard/proxy"
)

// Proxies checks each proxy that runs: what was found of it, and whether
// evidence and quarantine will work. ways is what the agent's configuration
// adds.
func Proxies(ways Ways) []Finding {
	finder, err := proxy.NewFinder()
	if err != nil {
		return []Finding{{Check: "proxies", Level: Fail, Found: err.Error(), Remedy: "run as root"}}
	}
	defer finder.Close()
	found, _ := finder.Scan() // what could be read
	if len(found) == 0 {
		return []Finding{{Check: "proxies", Level: Warn, Found: "none", Why: "there is nothing to watch yet", Remedy: "start nginx, OpenResty or HAProxy; the agent finds it within a second"}}
	}
	cache := symbol.NewCache(64)
	var list []Finding
	for _, p := range found {
		list = append(list, describe(p, cache, ways)...)
	}
	return list
}

func describe(p proxy.Proxy, cache *symbol.Cache, ways Ways) []Finding {
	list := []Finding{{Check: p.Name, Level: OK, Found: fmt.Sprintf("%s, master %d, %d workers", p.Version, p.Master, len(p.Workers))}}
	if p.ExeDeleted {
		list = append(list, Finding{Check: p.Name, Level: Warn, Found: "its binary was replaced since it started", Why: "a respawned worker still runs the old one", Remedy: "reload by binary upgrade (USR2) or restart"})
	}
	if len(p.Workers) == 0 {
		return list
	}
	w := p.Workers[0]
	if w.Progress.Size == 0 && p.Kind != proxy.Go {
		list = append(list, Finding{Check: p.Name, Level: Fail, Found: "no progress word", Why: "its stalls can't be told from work", Remedy: "report the build: " + p.Version})
	}
	process, err := profiler.Open(w.PID, cache)
	if err != nil {
		return append(list, Finding{Check: p.Name, Level: Fail, Found: err.Error(), Why: "no evidence can be taken", Remedy: "run as root"})
	}
	defer func() { _ = process.Close() }()
	h := Host{Root: "/"}
	list = append(list, h.throttling(p.Name, w.PID)...)
	switch p.Kind {
	case proxy.Nginx:
		evidence, lua := luaEvidence(p.Name, process)
		q := quarantineFacts{lua: lua, ways: ways}
		q.ledger, q.ledgerErr = ledgerOf(w, process.Memory())
		settings := h.configuration(p, q)
		return slices.Concat(list, limits(p, w, settings), []Finding{evidence}, settings)
	case proxy.HAProxy:
		return slices.Concat(list, limits(p, w, nil), h.haproxySettings(p))
	}
	return append(append(list, limits(p, w, nil)...), Finding{Check: p.Name + " quarantine", Level: OK, Found: "won't work, and is not needed: the Go runtime preempts loops by itself"})
}

// luaEvidence says which Lua runs in a worker of nginx, and what of it the
// agent can read.
func luaEvidence(name string, process *profiler.Process) (f Finding, lua bool) {
	f = Finding{Check: name + " evidence", Level: OK}
	problem := process.LuaProblem()
	switch {
	case process.LuaWatch().Global != 0:
		f.Found = luaBuild(process.PID()) + ": Lua stacks and values work"
	case problem != nil:
		f.Level, f.Found = Warn, luaBuild(process.PID())+": "+problem.Error()
		f.Why, f.Remedy = "evidence has native stacks only: which Lua is stuck is not seen", "use a LuaJIT 2.1 build with 64-bit references, as Debian and OpenResty have it"
	default:
		f.Found = "no LuaJIT VM: native evidence only"
		return f, false
	}
	return f, true
}
