package proxy

import (
	"fmt"
	"path/filepath"
	"strings"
)

// names gives each proxy a name for metrics and keeps it while the proxy
// lives: a reload that adds an address must not start new time series.
type names map[string]string // by ID

func (n names) give(proxies []Proxy) {
	alive := make(map[string]bool, len(proxies))
	taken := make(map[string]bool, len(proxies))
	for _, p := range proxies {
		alive[p.ID] = true
	}
	for id, name := range n {
		if !alive[id] {
			delete(n, id)
			continue
		}
		taken[name] = true
	}
	for i := range proxies {
		p := &proxies[i]
		if n[p.ID] == "" {
			n[p.ID] = n.choose(p, taken)
			taken[n[p.ID]] = true
		}
		p.Name = n[p.ID]
	}
}

// choose prefers what is the same after a restart. A binary upgrade has the
// addresses of its predecessor and takes over its name too.
func (n names) choose(p *Proxy, taken map[string]bool) string {
	product, _, _ := strings.Cut(strings.ToLower(p.Version), "/")
	if product == "" {
		product = string(p.Kind)
	}
	name := product
	switch {
	case len(p.Listen) > 0:
		name += "@" + p.Listen[0]
	case p.ConfPath != "":
		name += "@" + p.ConfPath
	case p.Exe != "":
		name += "@" + filepath.Base(p.Exe)
	}
	if p.Upgraded != 0 && n[fmt.Sprintf("%s-%d", p.Kind, p.Upgraded)] == name {
		return name
	}
	unique := name
	for i := 2; taken[unique]; i++ {
		unique = fmt.Sprintf("%s#%d", name, i)
	}
	return unique
}
