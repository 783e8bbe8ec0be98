package luajit

import "sync"

// nameIndex names functions by the tables that hold them: the globals, the
// libraries among them, and the loaded modules.
type nameIndex struct {
	mu       sync.Mutex
	names    map[uint64]string
	misses   int // since it was built
	patience int
}

const (
	indexNames  = 20000
	indexTables = 2000
	indexDepth  = 3
)

// lookup returns the name of a function, "" if no module holds it. Modules
// may be loaded at any time, so misses make it look again, ever more rarely.
func (x *nameIndex) lookup(vm *VM, fn uint64) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if name, ok := x.names[fn]; ok {
		return name
	}
	if x.names != nil {
		if x.misses++; x.misses < x.patience {
			return ""
		}
	}
	const first, most = 16, 1 << 16
	x.names, x.misses = vm.collectNames(vm.background()), 0
	x.patience = min(max(first, 4*x.patience), most)
	return x.names[fn]
}

// collector gathers names breadth first, so that the shortest path wins.
type collector struct {
	r     reader
	names map[uint64]string
	seen  map[uint64]bool
	queue []namedTable
}

type namedTable struct {
	addr  uint64
	path  string
	depth int
}

func (vm *VM) collectNames(r reader) map[uint64]string {
	c := &collector{r: r, names: map[uint64]string{}, seen: map[uint64]bool{}}
	globals := r.u64(vm.main + uint64(vm.cframe) - 8) // lua_State.env lies before cframe
	c.push(globals, "", 0)
	if lib, ok := r.field(globals, "package"); ok && lib.isTable() {
		if loaded, ok := r.field(lib.addr(), "loaded"); ok && loaded.isTable() {
			c.seen[loaded.addr()] = true
			c.push2(loaded.addr())
		}
	}
	for len(c.queue) > 0 && len(c.names) < indexNames && len(c.seen) < indexTables {
		t := c.queue[0]
		c.queue = c.queue[1:]
		c.visit(t)
	}
	return c.names
}

func (c *collector) push(addr uint64, path string, depth int) {
	if !c.seen[addr] && depth <= indexDepth {
		c.seen[addr] = true
		c.queue = append(c.queue, namedTable{addr, path, depth})
	}
}

// push2 queues package.loaded, whose entries have their own full names.
func (c *collector) push2(addr uint64) {
	c.queue = append(c.queue, namedTable{addr, "", 1})
}

func (c *collector) visit(t namedTable) {
	tab, ok := c.r.table(t.addr)
	if !ok {
		return
	}
	c.r.nodes(tab, maxFields, func(key, val tv) bool {
		if key.tag() != tagStr || (!val.isFunc() && !val.isTable()) {
			return true
		}
		name, _, ok := c.r.str(key.addr(), 64)
		if !ok || name == "" {
			return true
		}
		full := printable(name, 64)
		if t.path != "" {
			full = t.path + "." + full
		}
		if val.isTable() {
			c.push(val.addr(), full, t.depth+1)
		} else if _, have := c.names[val.addr()]; !have {
			c.names[val.addr()] = full
		}
		return len(c.names) < indexNames
	})
}
