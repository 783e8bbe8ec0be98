package symbol

import "sync"

// maxNamed bounds the named addresses of one image.
const maxNamed = 8192

// nameMemo remembers names by address. Safe for concurrent use; the zero value
// is ready.
type nameMemo struct {
	mu    sync.RWMutex
	known map[uint64]string
}

func (m *nameMemo) ask(vaddr uint64, find func(uint64) string) string {
	m.mu.RLock()
	name, ok := m.known[vaddr]
	m.mu.RUnlock()
	if ok {
		return name
	}
	name = find(vaddr)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxNamed {
		m.known = map[uint64]string{}
	}
	m.known[vaddr] = name
	return name
}
