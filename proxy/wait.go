package proxy

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// Wait says what a blocked thread waits for. Text is one phrase for people;
// the other fields are set where they apply.
type Wait struct {
	Syscall string // "wait4"; "system call 999" for a number without a name
	Text    string // "wait4: child 4711 (sleep 4)"
	FD      int    // -1: none
	Path    string // file behind the descriptor or in the arguments
	Peer    string // remote address of the socket: "10.0.0.7:3306"
	Child   int    // pid of the child that is waited for
	Command string // its command line
	Futex   uint64 // address of the futex
	// LockOwner is the pid in the lock word of an nginx shared memory zone,
	// as the worker's own pid namespace counts; 0: this is no such lock.
	LockOwner int
	Sleep     time.Duration // length of a sleep as asked for
}

// DescribeWait explains a look that found the thread asleep in a system call.
// The process may change meanwhile: what cannot be read is left out.
func DescribeWait(mem procmem.Memory, pid int, l Look) Wait {
	w := Wait{FD: -1}
	if l.Running {
		w.Text = "nothing: it runs"
		return w
	}
	if l.Syscall < 0 {
		w.Text = "outside of a system call, such as a page fault"
		return w
	}
	call := callOf(l.Syscall)
	w.Syscall, w.Text = call.name, call.name
	d := describer{mem: mem, pid: pid, args: l.Args, wait: &w}
	if call.describe != nil {
		call.describe(&d)
	}
	return w
}

// describer fills in a Wait from the arguments of a system call.
type describer struct {
	mem  procmem.Memory
	pid  int
	args [6]uint64
	wait *Wait
}

func (d *describer) say(format string, args ...any) {
	d.wait.Text = d.wait.Syscall + ": " + fmt.Sprintf(format, args...)
}

// describeFD explains the descriptor in the first argument.
func describeFD(d *describer) { d.fd(int(int32(d.args[0]))) }

func (d *describer) fd(fd int) {
	d.wait.FD = fd
	target := fdTarget(d.pid, fd)
	inode, isSocket := socketInode(target)
	switch {
	case target == "":
		d.say("descriptor %d", fd)
	case isSocket:
		d.socket(fd, inode)
	case strings.HasPrefix(target, "/"):
		d.wait.Path = sanitize(target)
		d.say("file %s", d.wait.Path)
	default:
		d.say("descriptor %d, %s", fd, sanitize(target))
	}
}

func (d *describer) socket(fd int, inode uint64) {
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		var hit *netSocket
		eachSocket(d.pid, table, func(s netSocket) bool {
			if s.inode == inode {
				hit = &s
			}
			return hit == nil
		})
		if hit != nil {
			d.wait.Peer = peerText(hit.remote)
			d.say("descriptor %d, %s", fd, socketText(table, *hit))
			return
		}
	}
	d.say("descriptor %d, socket", fd)
	eachUnix(d.pid, func(s unixSocket) bool {
		if s.inode == inode {
			d.say("descriptor %d, unix socket %s", fd, sanitize(s.path))
		}
		return s.inode != inode
	})
}

func peerText(remote netip.AddrPort) string {
	if remote.Port() == 0 {
		return ""
	}
	return remote.String()
}

func socketText(table string, s netSocket) string {
	text := fmt.Sprintf("%s socket %s", strings.TrimSuffix(table, "6"), s.local)
	if peer := peerText(s.remote); peer != "" {
		text += " to " + peer
	}
	if s.state == "02" {
		text += ", connecting"
	}
	return text
}

// describePollFDs explains the first descriptor of a poll.
func describePollFDs(d *describer) {
	count := d.args[1]
	fd, err := procmem.Uint32(d.mem, d.args[0])
	if count == 0 || count > 1<<20 || err != nil {
		d.say("%d descriptors", count)
		return
	}
	d.fd(int(int32(fd)))
	if count > 1 {
		d.wait.Text += fmt.Sprintf(" and %d more", count-1)
	}
}

// describePath explains a path argument: the one with the given index.
func describePath(index int) func(*describer) {
	return func(d *describer) {
		b, ok := readUpTo(d.mem, d.args[index], 4096)
		if !ok {
			return
		}
		path, _, _ := strings.Cut(string(b), "\x00")
		d.wait.Path = sanitize(path)
		d.say("file %s", d.wait.Path)
	}
}

// describeChild explains the child that wait4 or waitid waits for.
func describeChild(index int) func(*describer) {
	return func(d *describer) {
		child := int(int32(d.args[index]))
		if child <= 0 || index == 1 && d.args[0] != 1 {
			child = firstChild(d.pid)
		} else {
			child = outerPID(d.pid, child)
		}
		if child == 0 {
			d.say("any child")
			return
		}
		d.wait.Child, d.wait.Command = child, sanitize(strings.Join(cmdline(child), " "))
		d.say("child %d (%s)", child, d.wait.Command)
	}
}

func children(pid int) []int {
	b, err := os.ReadFile(procPath(pid, "task/"+strconv.Itoa(pid)+"/children"))
	if err != nil {
		return nil
	}
	var pids []int
	for _, text := range strings.Fields(string(b)) {
		if child, err := strconv.Atoi(text); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}

func firstChild(pid int) int {
	if pids := children(pid); len(pids) > 0 {
		return pids[0]
	}
	return 0
}

// outerPID finds which child is called inner in its own pid namespace.
func outerPID(parent, inner int) int {
	for _, child := range children(parent) {
		if innerPID(child) == inner {
			return child
		}
	}
	return inner
}

// innerPID is the pid of a process in its innermost pid namespace.
func innerPID(pid int) int {
	b, err := os.ReadFile(procPath(pid, "status"))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(statusValue(b, "NSpid:")))
	if len(f) == 0 {
		return pid
	}
	v, _ := strconv.Atoi(f[len(f)-1])
	return v
}

// describeFutex explains a lock. An ngx_shmtx_t is a pointer to the lock word,
// one to the number of waiters behind it, a 1, and the semaphore on which the
// others sleep. The lock word holds the owner's pid.
func describeFutex(d *describer) {
	d.wait.Futex = d.args[0]
	d.say("futex %#x", d.args[0])
	var b [24]byte
	if d.args[0] < 24 || d.mem.ReadMemory(d.args[0]-24, b[:]) != nil {
		return
	}
	lock, waiters := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	if !userAddress(lock) || waiters != lock+8 || binary.LittleEndian.Uint64(b[16:]) != 1 {
		return
	}
	owner, err := procmem.Uint64(d.mem, lock)
	if err != nil || owner == 0 || owner > 1<<22 || !siblingOrSelf(d.pid, int(owner)) {
		return
	}
	d.wait.LockOwner = int(owner)
	d.say("lock at %#x, held by pid %d", lock, owner)
}

// siblingOrSelf says whether a pid, as counted by the worker, is the worker or
// one of its master's children.
func siblingOrSelf(pid, inner int) bool {
	if inner == innerPID(pid) {
		return true
	}
	stat, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return false
	}
	fields := procmem.AfterComm(stat)
	if len(fields) < 2 {
		return false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return false
	}
	for _, sibling := range children(parent) {
		if innerPID(sibling) == inner {
			return true
		}
	}
	return false
}

// describeSleep explains the timespec in the given argument.
func describeSleep(index int) func(*describer) {
	return func(d *describer) {
		sec, err := procmem.Uint64(d.mem, d.args[index])
		nsec, err2 := procmem.Uint64(d.mem, d.args[index]+8)
		if err != nil || err2 != nil || sec > 1<<31 || nsec > 1e9 {
			return
		}
		d.wait.Sleep = time.Duration(sec)*time.Second + time.Duration(nsec)
		d.say("sleeps for %s", d.wait.Sleep)
	}
}
