// Gotarget is a Go program whose stack is known: main.main calls outer calls
// middle, which calls leaves, the runtime and the garbage collector.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"time"
)

var sink int

//go:noinline
func leaf(n int) int { return n*3 + sink }

//go:noinline
func deep(n int) int {
	var pad [64]int
	pad[n%64] = n
	if n == 0 {
		return leaf(pad[0])
	}
	return deep(n-1) + pad[n%64]
}

//go:noinline
func deferred(n int) (v int) {
	defer func() { v += leaf(n) }()
	return deep(n % 9)
}

//go:noinline
func middle(n int) int {
	m := map[string]int{}
	m[fmt.Sprintf("key%d", n)] = n
	list := []int{n % 7, n % 5, n % 3, 4, 9, 2}
	sort.Ints(list)
	var s []byte
	for i := range 2000 {
		s = append(s, byte(i))
	}
	return deferred(n) + len(m) + list[0] + len(s)
}

//go:noinline
func outer() {
	for i := 0; ; i++ {
		sink += middle(i)
	}
}

// From init on: before main begins, its goroutine may move to another thread.
func init() { runtime.LockOSThread() }

func main() {
	// Another thread says so, while this one is well on its way: on its way out
	// of a system call it would read the clock, and whoever is single-stepped
	// there reads it for ever, since it has ticked each time.
	go func() {
		time.Sleep(50 * time.Millisecond)
		os.Stdout.WriteString("ready\n")
	}()
	outer()
}
