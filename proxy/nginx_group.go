package proxy

import "fmt"

// nginxProxies groups nginx processes by master: its workers are its children
// with the worker's role, whatever their titles.
func (f *Finder) nginxProxies() []Proxy {
	byMaster := make(map[int]*Proxy)
	var order []int
	add := func(pid int, p Proxy) {
		byMaster[pid] = &p
		order = append(order, pid)
	}
	f.findMasters()
	for pid, p := range f.known {
		if n, ok := p.watched.(*nginxProcess); ok && n.leads() && !f.isFork(n) {
			add(pid, f.nginxLeader(n))
		}
	}
	for _, p := range f.known {
		n, ok := p.watched.(*nginxProcess)
		if !ok || n.vars.role != roleWorker || n.vars.helper {
			continue
		}
		master, known := f.masterOf(n)
		if !known {
			continue
		}
		if byMaster[master] == nil {
			add(master, n.orphans(master))
		}
		group := byMaster[master]
		group.Workers = append(group.Workers, n.worker(master))
	}
	proxies := make([]Proxy, 0, len(order))
	for _, pid := range order {
		sortWorkers(byMaster[pid].Workers)
		proxies = append(proxies, *byMaster[pid])
	}
	return proxies
}

// findMasters looks again at the parents of workers that are not known as
// masters: they may have executed nginx since they were looked at.
func (f *Finder) findMasters() {
	for _, p := range f.known {
		n, ok := p.watched.(*nginxProcess)
		// A worker that was forked just now still has its master's role.
		if ok && (n.vars.role == roleWorker || n.vars.role == roleMaster) {
			if parent := f.known[n.parent]; parent != nil && parent.watched == nil {
				f.classify(n.parent, parent)
			}
		}
	}
}

// leads says whether the process is a master, or a single process in its loop.
func (n *nginxProcess) leads() bool {
	return n.vars.role == roleMaster || n.vars.role == roleSingle && n.started
}

// isFork recognizes a child of a master between fork and the moment it takes
// its own role: it is still the same image with the same configuration. The
// master of a binary upgrade is a child too, but executed an image of its own.
func (f *Finder) isFork(n *nginxProcess) bool {
	if n.vars.role != roleMaster || !f.isNginxMaster(n.parent) {
		return false
	}
	master := f.known[n.parent].watched.(*nginxProcess)
	return master.exe == n.exe && master.bias == n.bias && master.cycle == n.cycle
}

// masterOf returns the master of a worker. Workers whose master has ended stay
// with its pid: they still serve until they are told otherwise.
func (f *Finder) masterOf(n *nginxProcess) (pid int, known bool) {
	if f.isNginxMaster(n.parent) {
		return n.parent, true
	}
	switch p := f.known[n.parent]; {
	case p == nil:
		// The parent has ended: the worker has another one now.
		_ = n.readParent()
	case p.watched != nil:
		// A child of a worker, between fork and exec.
		return 0, false
	}
	if n.vars.parent <= 1 || f.isNginxMaster(n.vars.parent) {
		return 0, false
	}
	return n.vars.parent, true
}

func (f *Finder) isNginxMaster(pid int) bool {
	p := f.known[pid]
	if p == nil {
		return false
	}
	n, ok := p.watched.(*nginxProcess)
	return ok && n.vars.role == roleMaster
}

func (f *Finder) nginxLeader(n *nginxProcess) Proxy {
	p := n.proxy(n.pid)
	p.StartTime, p.Starter = n.start, n.vars.parent
	if n.vars.role == roleSingle {
		p.Workers = []Worker{n.worker(0)}
	} else if f.isNginxMaster(n.parent) {
		p.Upgraded = n.parent
	}
	return p
}

func (n *nginxProcess) proxy(master int) Proxy {
	return Proxy{
		ID: fmt.Sprintf("nginx-%d", master), Kind: Nginx, Master: master,
		Exe: n.path, ExeDeleted: n.deleted, Version: n.exe.version,
		Prefix: n.cycleInfo.prefix, ConfPath: n.cycleInfo.conf, Listen: n.cycleInfo.listen,
	}
}

// orphans is the proxy of workers whose master has ended.
func (n *nginxProcess) orphans(master int) Proxy {
	n.refreshCycle()
	p := n.proxy(master)
	p.MasterGone = true
	return p
}

func (n *nginxProcess) worker(master int) Worker {
	msec, _ := n.addr("ngx_current_msec")
	return Worker{
		PID: n.pid, TID: n.pid, StartTime: n.start, Index: int(n.vars.worker), Master: master, Kind: Nginx,
		Exiting: n.vars.exiting, Started: n.started, Exe: n.path,
		Progress: Progress{Addr: msec, Size: 8, Name: "ngx_current_msec"},
	}
}
