package classes

import (
	"cmp"
	"container/list"
	"slices"
	"time"
)

// Key is a class of requests.
type Key struct {
	Proxy, Upstream, Route, Phase string
}

// Entry is what one class used.
type Entry struct {
	Key
	CPU     time.Duration // since the class was first seen
	Samples int
	Over    int // requests that went over their budget
}

// Table holds the classes that were seen last. The zero value is none: see New.
type Table struct {
	most  int
	order *list.List // of *Entry, used last in front
	byKey map[Key]*list.Element
}

// New returns a table of at most so many classes.
func New(most int) *Table {
	return &Table{most: most, order: list.New(), byKey: map[Key]*list.Element{}}
}

// Add charges CPU time to a class.
func (t *Table) Add(k Key, cpu time.Duration) {
	e := t.entry(k)
	e.CPU += cpu
	e.Samples++
}

// Over notes a request of the class that went over its budget.
func (t *Table) Over(k Key) { t.entry(k).Over++ }

func (t *Table) entry(k Key) *Entry {
	if at, ok := t.byKey[k]; ok {
		t.order.MoveToFront(at)
		return at.Value.(*Entry)
	}
	if t.order.Len() >= t.most {
		oldest := t.order.Back()
		delete(t.byKey, oldest.Value.(*Entry).Key)
		t.order.Remove(oldest)
	}
	e := &Entry{Key: k}
	t.byKey[k] = t.order.PushFront(e)
	return e
}

// Routes returns how many routes of a proxy the table holds.
func (t *Table) Routes(proxy string) int {
	seen := map[string]bool{}
	for k := range t.byKey {
		if k.Proxy == proxy && k.Route != "" {
			seen[k.Route] = true
		}
	}
	return len(seen)
}

// Top returns the n classes that used the most CPU time.
func (t *Table) Top(n int) []Entry {
	all := make([]Entry, 0, t.order.Len())
	for at := t.order.Front(); at != nil; at = at.Next() {
		all = append(all, *at.Value.(*Entry))
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(a.Proxy, b.Proxy), cmp.Compare(a.Upstream, b.Upstream),
			cmp.Compare(a.Route, b.Route), cmp.Compare(a.Phase, b.Phase))
	})
	return all[:min(n, len(all))]
}
