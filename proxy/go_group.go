package proxy

import "fmt"

// goProcess is a Go proxy. Its threads are interchangeable, so it is one
// worker; it has no progress word.
type goProcess struct {
	instance
	listen  []string
	lookups int
}

func watchGo(pid int, e *exe) (watched, error) {
	in, err := openInstance(pid, e)
	if err != nil {
		return nil, err
	}
	return &goProcess{instance: in}, nil
}

// Its addresses appear only some time after the start.
const listenLookups = 10

func (g *goProcess) refresh() error {
	var b [1]byte
	if err := g.mem.ReadMemory(g.exe.entry+g.bias, b[:]); err != nil {
		return err
	}
	if len(g.listen) == 0 && g.lookups < listenLookups {
		g.lookups++
		g.listen = listening(g.pid)
	}
	return nil
}

// goProxies lists Go proxies that serve: "caddy fmt" is none.
func (f *Finder) goProxies() []Proxy {
	var proxies []Proxy
	for pid, p := range f.known {
		g, ok := p.watched.(*goProcess)
		if !ok || len(g.listen) == 0 {
			continue
		}
		proxies = append(proxies, Proxy{
			ID: fmt.Sprintf("go-%d", pid), Kind: Go, Master: pid, StartTime: g.start,
			Exe: g.path, ExeDeleted: g.deleted, Version: g.exe.version, Listen: g.listen,
			Workers: []Worker{{PID: pid, TID: pid, StartTime: g.start, Kind: Go, Started: true, Exe: g.path}},
		})
	}
	return proxies
}
