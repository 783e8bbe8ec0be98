package doctor

import (
	"fmt"

	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/symbol"
	"github.com/spinguard/spinguard/proxy"
)

// Proxies checks each proxy that runs: what was found of it, and whether
// evidence will work.
func Proxies() []Finding {
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
		list = append(list, describe(p, cache)...)
	}
	return list
}

func describe(p proxy.Proxy, cache *symbol.Cache) []Finding {
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
	if p.Kind == proxy.Nginx && process.LuaWatch().Global == 0 {
		list = append(list, Finding{Check: p.Name, Level: OK, Found: "no LuaJIT VM: native evidence only"})
		return append(append(list, limits(p, w)...), settings(p)...)
	}
	if p.Kind == proxy.Nginx {
		list = append(list, Finding{Check: p.Name, Level: OK, Found: "LuaJIT found: Lua stacks and values work"})
		list = append(list, library(p)...)
	}
	list = append(list, limits(p, w)...)
	return append(list, settings(p)...)
}

// settings checks the proxy's own configuration.
func settings(p proxy.Proxy) []Finding {
	h := Host{Root: "/"}
	return append(h.configuration(p), h.haproxySettings(p)...)
}
