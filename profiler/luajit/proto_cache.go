package luajit

import (
	"container/list"
	"sync"
)

// protoCache keeps the prototypes that were used last.
type protoCache struct {
	mu    sync.Mutex
	byAt  map[uint64]*list.Element
	order *list.List // of *cachedProto, last used first
	bytes int
}

type cachedProto struct {
	addr uint64
	key  [40]byte
	p    *proto
}

const (
	cacheProtos = 4096
	cacheBytes  = 16 << 20
)

func newProtoCache() *protoCache {
	return &protoCache{byAt: map[uint64]*list.Element{}, order: list.New()}
}

// get returns the prototype at the address if it still is the one with that
// key, else what load returns. A nil result is not kept.
func (c *protoCache) get(addr uint64, key [40]byte, load func() *proto) *proto {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byAt[addr]; ok {
		if cached := e.Value.(*cachedProto); cached.key == key {
			c.order.MoveToFront(e)
			return cached.p
		}
		c.remove(e)
	}
	p := load()
	if p == nil {
		return nil
	}
	c.byAt[addr] = c.order.PushFront(&cachedProto{addr, key, p})
	c.bytes += cost(p)
	for c.order.Len() > cacheProtos || (c.bytes > cacheBytes && c.order.Len() > 1) {
		c.remove(c.order.Back())
	}
	return p
}

func (c *protoCache) remove(e *list.Element) {
	cached := e.Value.(*cachedProto)
	c.order.Remove(e)
	delete(c.byAt, cached.addr)
	c.bytes -= cost(cached.p)
}

// cost is about what a prototype holds in memory.
func cost(p *proto) int { return 2*len(p.raw) + 64*len(p.vars) + 256 }
