package proxy

import (
	"fmt"
	"testing"
)

// The handlers share a dict; one keeps its mutex, which lies in the slab pool
// at the start of the zone, and never gives it back.
const holder = `
location /hold { content_by_lua_block {
    local ffi = require "ffi"
    ffi.cdef "struct zone { void *data; char *addr; }; void ngx_shmtx_lock(void *mutex);"
    local zone = ffi.cast("struct zone **", ngx.shared.d[1])[0]
    ffi.C.ngx_shmtx_lock(zone.addr + 104)
    while true do end } }
location /want { content_by_lua_block { ngx.say(ngx.shared.d:get("x")) } }
`

func TestNamesOwnerOfLock(t *testing.T) {
	s := startNginx(t, nginxOptions{lua: true, main: "worker_processes 2;", http: "lua_shared_dict d 1m;", location: holder})
	p := waitProxy(t, newFinder(t), s.pid, "two workers", started(2))
	hang(t, s, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
	owner := busyWorker(t, p)
	victim := p.Workers[1-owner.Index]
	hang(t, s, "GET /want HTTP/1.1\r\nHost: x\r\n\r\n")
	l := waitLook(t, newWatcher(t, victim), "a futex", func(l Look) bool { return SyscallName(l.Syscall) == "futex" })
	d := describe(t, victim, l)
	// The semaphore lies 24 bytes behind the mutex, the mutex 104 behind the lock word.
	want := fmt.Sprintf("futex: lock at %#x, held by pid %d", l.Args[0]-128, owner.PID)
	if d.LockOwner != owner.PID || d.Text != want {
		t.Errorf("%+v, want %s", d, want)
	}
}
