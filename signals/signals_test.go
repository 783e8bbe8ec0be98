package signals

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const netstat = `TcpExt: SyncookiesSent ListenOverflows ListenDrops
TcpExt: 0 %d 7
IpExt: InNoRoutes
IpExt: 0
`

const snmp = "Tcp: RtoAlgorithm MaxConn AttemptFails\nTcp: 1 -1 5\n"

func TestParsesCounters(t *testing.T) {
	got, err := ParseCounters(strings.NewReader(fmt.Sprintf(netstat, 3) + snmp))
	if err != nil || got["TcpExt.ListenOverflows"] != 3 || got["TcpExt.ListenDrops"] != 7 || got["Tcp.AttemptFails"] != 5 {
		t.Error(got, err)
	}
	if _, ok := got["Tcp.MaxConn"]; ok {
		t.Error("-1 is no counter")
	}
	for _, bad := range []string{"Tcp: a b\n", "Tcp: a b\nTcp: 1\n", "Tcp: a\nUdp: 1\n"} {
		if _, err := ParseCounters(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestParsesLimits(t *testing.T) {
	for text, want := range map[string]uint64{
		"Limit  Soft\nMax open files            1024                 4096                 files\n": 1024,
		"Max open files unlimited unlimited files":                                                 math.MaxUint64,
	} {
		if got, err := ParseOpenFiles(strings.NewReader(text)); err != nil || got != want {
			t.Error(got, err)
		}
	}
	for _, bad := range []string{"", "Max open files", "Max open files x y"} {
		if _, err := ParseOpenFiles(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// fakeProc is a /proc with one process.
func fakeProc(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir+"/net/snmp", snmp)
	put(t, dir+"/net/netstat", fmt.Sprintf(netstat, 0))
	put(t, dir+"/7/limits", "Max open files 100 200 files\n")
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var started = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func kinds(r Report) (list []string) {
	for _, s := range r.Signals {
		list = append(list, s.Kind+": "+s.Text)
	}
	return list
}

func TestForetellsWhenFilesRunOut(t *testing.T) {
	c := newCollector("", nil)
	tr := &trend{}
	f := Files{Limit: 100}
	for i := range 10 {
		f.Open = uint64(10 + 5*i)
		tr.add(started.Add(time.Duration(i)*Every), f.Open)
	}
	f.Exhaustion = tr.exhaustion(f) // one a second, 45 left
	if f.Exhaustion != 45*time.Second {
		t.Errorf("exhaustion in %s, want 45s", f.Exhaustion)
	}
	var r Report
	for range 2 {
		c.judgeFiles(&r, started, Worker{Index: 1, PID: 7}, f)
	}
	if got := kinds(r); len(got) != 1 || !strings.Contains(got[0], "55 of 100 files open, and runs out of them in 45s") {
		t.Errorf("%q", got)
	}
	flat := &trend{}
	for i := range 10 {
		flat.add(started.Add(time.Duration(i)*Every), 55)
	}
	if got := flat.exhaustion(Files{Open: 55, Limit: 100}); got != 0 {
		t.Errorf("a flat line ends in %s", got)
	}
}

func TestTellsCountersThatRise(t *testing.T) {
	dir := fakeProc(t)
	c := newCollector(dir, nil)
	first, err := c.Collect(started, nil)
	if err != nil || len(first.Signals) != 0 {
		t.Fatal(kinds(first), err)
	}
	put(t, dir+"/net/netstat", fmt.Sprintf(netstat, 4))
	second, err := c.Collect(started.Add(Every), nil)
	if got := kinds(second); err != nil || len(got) != 1 || !strings.Contains(got[0], "4 connections met a full listen queue") {
		t.Error(got, err)
	}
}

func TestTellsRestarts(t *testing.T) {
	c := newCollector(fakeProc(t), func(uint32, func(socket)) error { return nil })
	var last Report
	for _, pid := range []int{7, 8, 8} {
		last, _ = c.Collect(started, []Worker{{Proxy: "p", Index: 1, PID: pid, Since: started}})
		if got := strings.Contains(fmt.Sprint(kinds(last)), "restart: 1 workers are new"); got != (pid == 8 && last.Restarts["p"] == 1 && c.rounds == 2) {
			t.Errorf("round %d: %q, %v", c.rounds, kinds(last), last.Restarts)
		}
	}
	if last.Restarts["p"] != 1 {
		t.Error(last.Restarts)
	}
}

func TestTellsPeersWithEverMoreConnections(t *testing.T) {
	c := newCollector("", nil)
	address := netip.MustParseAddrPort("10.0.0.1:80")
	var r Report
	for i := range 20 {
		n := 20
		if i == 19 {
			n = 200
		}
		if c.judgePeers(&r, started, map[netip.AddrPort]int{address: n}, 1); i < 19 && len(r.Signals) > 0 {
			t.Fatal(kinds(r))
		}
	}
	if got := kinds(r); len(got) != 1 || !strings.Contains(got[0], "200 connections to 10.0.0.1:80, usual are 20") {
		t.Error(got)
	}
}

// A real listening socket that nobody accepts from.
func TestFindsTheWorkerWithAFullQueue(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	err = errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 4))
	if err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	c := New()
	me := []Worker{{Proxy: "me", Index: 1, PID: os.Getpid()}}
	if r, err := c.Collect(time.Now(), me); err != nil || len(r.Queues) != 0 || r.Files[os.Getpid()].Open == 0 || r.Files[os.Getpid()].Limit == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	for range 5 {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	r, err := c.Collect(time.Now(), me)
	if err != nil || r.Queues[os.Getpid()] < 1 || !strings.Contains(strings.Join(kinds(r), " "), "does not accept: 5 of 4 connections wait at "+address) {
		t.Errorf("%v, %q, %v", r.Queues, kinds(r), err)
	}
}

func FuzzParseCounters(f *testing.F) {
	f.Add(netstat)
	f.Fuzz(func(_ *testing.T, text string) { _, _ = ParseCounters(strings.NewReader(text)) })
}

func FuzzParseOpenFiles(f *testing.F) {
	f.Add("Max open files 1 2 files")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = ParseOpenFiles(strings.NewReader(text)) })
}

func FuzzParseMessages(f *testing.F) {
	f.Add(diagRequest(2, 1))
	f.Add(make([]byte, 200))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _, _ = parseMessages(b, func(socket) {}) })
}

func BenchmarkCollect(b *testing.B) {
	c := New()
	me := []Worker{{Proxy: "me", Index: 1, PID: os.Getpid()}}
	for b.Loop() {
		_, _ = c.Collect(time.Now(), me)
	}
}

func TestParsesEpoll(t *testing.T) {
	const text = "pos:\t0\nflags:\t02\ntfd:        6 events: 80000019 data: 1  pos:0 ino:2 sdev:8\ntfd:       12 events:       1b\ntfd:\n"
	if got := ParseEpoll(strings.NewReader(text)); strings.Join(got, " ") != "6 12" {
		t.Error(got)
	}
}

func FuzzParseEpoll(f *testing.F) {
	f.Add("tfd:        6 events: 19")
	f.Fuzz(func(_ *testing.T, text string) { ParseEpoll(strings.NewReader(text)) })
}

// A family without connections is not asked for them, as the kernel's own
// count has it: the table is large on any host.
func TestAsksForNoConnectionsWhereThereAreNone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	found := func(d *dumper) bool {
		t.Helper()
		if err := d.dump(1<<listen, func(socket) {}); err != nil {
			t.Fatal(err)
		}
		seen := false
		if err := d.dump(connecting, func(s socket) { seen = seen || s.local.String() == conn.LocalAddr().String() }); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	met := false
	for i := 0; i < 50 && !met; i++ { // listeners of others may end between the list and the count
		met = found(&dumper{proc: "/proc"})
	}
	if !met {
		t.Error("the connection was not found")
	}
	dir := t.TempDir()
	if !found(&dumper{proc: dir}) {
		t.Error("without a count the connection was not found")
	}
	put(t, dir+"/net/sockstat", "sockets: used 23\nTCP: inuse 0 orphan 0 tw 1968 alloc 12 mem 126\n")
	if found(&dumper{proc: dir}) {
		t.Error("it was asked for connections of a family that has none")
	}
}

func TestSocketsInUse(t *testing.T) {
	for text, want := range map[string]int{"sockets: used 1\nTCP: inuse 9 orphan 0": 9, "TCP: inuse 12\n": 12, "TCP: inuse 7": 7, "TCP: inuse x": -1, "UDP: inuse 3": -1} {
		if n, ok := socketsInUse([]byte(text), "TCP: inuse "); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %v", text, n, ok)
		}
	}
}

// All connections are walked through at first, then each third time, and each
// time while there are far more of them than usual.
func TestWalksThroughConnectionsSeldom(t *testing.T) {
	peer := netip.MustParseAddrPort("10.0.0.1:80")
	walks, connections := 0, 20
	c := newCollector("/proc", func(states uint32, each func(socket)) error {
		if states != connecting {
			return nil
		}
		walks++
		for range connections {
			each(socket{state: established, local: netip.MustParseAddrPort("10.0.0.2:9"), remote: peer, uid: uint32(os.Getuid())})
		}
		return nil
	})
	at := started
	rounds := func(n int) (walked int) {
		before := walks
		for range n {
			var r Report
			c.rounds++
			at = at.Add(Every)
			if err := c.collectSockets(&r, at, []Worker{{Proxy: "me", Index: 1, PID: os.Getpid()}}); err != nil {
				t.Fatal(err)
			}
		}
		return walks - before
	}
	if n := rounds(3); n != 3 {
		t.Errorf("%d walks in the first 3 rounds", n)
	}
	if n := rounds(30); n != 10 {
		t.Errorf("%d walks in 30 rounds, want each third", n)
	}
	if usual := c.peers[peer.String()].usual; usual != 20 {
		t.Errorf("usual are %v connections, want 20", usual)
	}
	connections = 400
	rounds(3)
	if n := rounds(3); n != 3 {
		t.Errorf("%d walks in 3 rounds while there are far more connections than usual", n)
	}
}
