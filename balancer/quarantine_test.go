package balancer

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/procmem"
	"golang.org/x/sys/unix"
)

// fatalPicker is the rotation of that night: gcd(b, a % b) over weights as
// they came. The string "0" makes a NaN of it, and the recursion never ends.
const fatalPicker = `
local function gcd(a, b)
    if b == 0 then return a end
    return gcd(b, a % b)
end
spinguard.wrap("backend", function(peers)
    local at, current = 0, 0
    local rr = {}
    function rr:find()
        local g, top = peers[1].weight, 0
        for _, p in ipairs(peers) do
            g = gcd(p.weight, g)
            if tonumber(p.weight) > top then top = tonumber(p.weight) end
        end
        while true do
            at = at % #peers + 1
            if at == 1 then
                current = current - g
                if current <= 0 then current = top end
            end
            if tonumber(peers[at].weight) >= current then
                return peers[at].address
            end
        end
    end
    return rr
end, { raw = true, kind = "fatal" })
`

func TestQuarantineServesTheLastGoodVersion(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 2, init: options(", slow_start = 1"), location: phases})
	p.publish(1, 0, 0)
	p.publish(0, 1, 0)
	first, second := fmt.Sprint(p.ports[0]), fmt.Sprint(p.ports[1])
	eventually(t, "version 2 serves", func() bool { return p.served(4)[second] == 4 })
	l := p.ledger()
	now := time.Now()
	e, err := l.Add(Entry{
		Kind: KindVersion, Upstream: "backend", Version: 2, Until: now.Add(1500 * time.Millisecond), Origin: "test",
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "version 1 serves", func() bool { return p.served(8)[first] == 8 })
	_, v := p.adminRequest("GET", "/upstreams/backend", "")
	if v["published"].(float64) != 2 || v["serving"].(float64) != 1 {
		t.Errorf("published %v, serving %v; want 2 and 1", v["published"], v["serving"])
	}
	_, v = p.adminRequest("GET", "/quarantines", "")
	if got := fmt.Sprint(v["quarantines"]); !strings.Contains(got, e.ID) {
		t.Errorf("quarantines %s, want %s", got, e.ID)
	}
	eventually(t, "version 2 serves again by itself", func() bool { return p.served(8)[second] == 8 })
}

// A version whose quarantine has ended takes over bit by bit, beginning with
// the first pick.
func TestVersionComesBackSlowly(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 1, init: options(", slow_start = 2"), location: phases})
	p.publish(1, 0, 0)
	p.served(4)
	p.publish(0, 1, 0)
	first, second := fmt.Sprint(p.ports[0]), fmt.Sprint(p.ports[1])
	l, now := p.ledger(), time.Now()
	until := now.Add(500 * time.Millisecond)
	if _, err := l.Add(Entry{Kind: KindVersion, Upstream: "backend", Version: 2, Until: until}, now); err != nil {
		t.Fatal(err)
	}
	eventually(t, "version 1 serves", func() bool { return p.served(8)[first] == 8 })
	time.Sleep(time.Until(until.Add(50 * time.Millisecond)))
	if got := p.served(1); got[second] != 1 {
		t.Errorf("the first pick: %v, want version 2", got)
	}
	mixed := 0
	eventually(t, "version 2 serves alone", func() bool {
		got := p.served(20)
		if got[first] > 0 && got[second] > 0 {
			mixed++
		}
		return got[second] == 20 && mixed > 0
	})
	if mixed < 3 {
		t.Errorf("%d of the batches were served by both versions, want several", mixed)
	}
}

func TestQuarantineByDigestAndLift(t *testing.T) {
	p := startProxy(t, proxyOptions{})
	p.publish(1, 0, 0)
	p.publish(0, 1, 0)
	_, v := p.adminRequest("GET", "/upstreams/backend", "")
	digest := v["versions"].([]any)[0].(map[string]any)["digest"].(string)
	l, now := p.ledger(), time.Now()
	e, err := l.Add(Entry{
		Kind: KindVersion, Upstream: "backend", Version: 99, Digest: digest, Until: now.Add(time.Minute),
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	first, second := fmt.Sprint(p.ports[0]), fmt.Sprint(p.ports[1])
	eventually(t, "version 1 serves", func() bool { return p.served(2)[first] == 2 })
	if ok, err := l.Lift(e.ID, now); !ok || err != nil {
		t.Fatalf("lift: %v %v", ok, err)
	}
	eventually(t, "version 2 serves", func() bool { return p.served(2)[second] == 2 })
}

func TestNoVersionLeft(t *testing.T) {
	p := startProxy(t, proxyOptions{})
	p.publish(1)
	l, now := p.ledger(), time.Now()
	if _, err := l.Add(Entry{Kind: KindVersion, Upstream: "backend", Version: 1, Until: now.Add(time.Minute)}, now); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a clear refusal", func() bool { code, _ := p.get("/"); return code == 502 })
	if !strings.Contains(p.log(), "no version can be served: version 1 is in quarantine") {
		t.Error("the error log does not say why")
	}
}

// The poison of that night, end to end but for the agent: the crumb tells
// which version hangs the worker, the ledger keeps its successor from it.
func TestCrumbOfAHangingPicker(t *testing.T) {
	for _, jitOff := range []bool{false, true} {
		t.Run(fmt.Sprintf("jitOff=%v", jitOff), func(t *testing.T) {
			p := startProxy(t, proxyOptions{init: fatalPicker, jitOff: jitOff})
			p.publish(5, 3)
			p.served(16)
			if v := p.publish("0", 3); v != 2 {
				t.Fatalf("poison is version %d", v)
			}
			worker := p.workers()[0]
			go func() { _, _ = p.client.Get(fmt.Sprintf("http://127.0.0.1:%d/", p.port)) }()
			c := activeCrumb(t, worker)
			want := Crumb{
				PID: worker, Active: true, Phase: PhasePick, Sequence: c.Sequence, Upstream: "backend", Version: 2,
				Digest: c.Digest, Picker: "fatal",
			}
			if c != want || len(c.Digest) != 16 {
				t.Errorf("crumb %+v, want %+v", c, want)
			}
			l, now := p.ledger(), time.Now()
			if _, err := l.Add(Entry{
				Kind: KindVersion, Upstream: c.Upstream, Version: c.Version, Digest: c.Digest, Until: now.Add(time.Minute),
			}, now); err != nil {
				t.Fatal(err)
			}
			if err := unix.Kill(worker, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a new worker", func() bool { w := p.workers(); return len(w) == 1 && w[0] != worker })
			p.served(32)
		})
	}
}

// With a cap on instructions the same poison can't hang the worker at all,
// with the JIT on or off: the plain rotation picks instead.
func TestCappedPicker(t *testing.T) {
	capped := strings.Replace(fatalPicker, "raw = true,", "raw = true, steps = 10000,", 1)
	for _, jitOff := range []bool{false, true} {
		p := startProxy(t, proxyOptions{init: capped, jitOff: jitOff})
		p.publish(5, 3)
		p.served(200) // so that the picker would be compiled
		p.publish("0", 3)
		p.served(50)
		if !strings.Contains(p.log(), "over 10000 instructions") {
			t.Errorf("jitOff=%v: the log does not say that the picker was stopped", jitOff)
		}
		if n := p.metric(counter("fallback_picks")); n != 50 {
			t.Errorf("jitOff=%v: %v picks by the plain rotation, want 50", jitOff, n)
		}
	}
}

// activeCrumb waits until the worker's crumb says the same pick twice.
func activeCrumb(t *testing.T, pid int) Crumb {
	t.Helper()
	proc, err := procmem.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = proc.Close() }()
	maps, err := procmem.ReadMaps(pid)
	if err != nil {
		t.Fatal(err)
	}
	files := FindFiles(maps, proc, pid)
	if filepath.Base(files.Ledger) != "ledger" {
		t.Fatalf("ledger found: %q", files.Ledger)
	}
	slot, err := SlotAddress(proc, files.Crumbs, NamespacePID(pid))
	if err != nil {
		t.Fatal(err)
	}
	var last, c Crumb
	eventually(t, "an active crumb", func() bool {
		last = c
		if c, err = ReadCrumb(proc, slot, NamespacePID(pid)); err != nil {
			t.Fatal(err)
		}
		return c.Active && c == last
	})
	return c
}

func TestDamagedLedgerNeverStopsTheService(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 2, server: lookedLocation})
	p.publish(1, 0)
	p.publish(0, 1)
	l, now := p.ledger(), time.Now()
	quarantine := func(l *Ledger) {
		t.Helper()
		if _, err := l.Add(Entry{ID: "q", Kind: KindVersion, Upstream: "backend", Version: 2, Until: now.Add(time.Minute)}, now); err != nil {
			t.Fatal(err)
		}
	}
	first := fmt.Sprint(p.ports[0])
	served := func() bool { return p.served(8)[first] == 8 }
	quarantine(l)
	// A worker that has no request knows it too, from its timer.
	epochs := map[string]bool{}
	eventually(t, "both workers have read the ledger", func() bool {
		if _, body := p.getOnce("/looked"); !strings.HasSuffix(body, " 0") {
			epochs[body] = true
		}
		return len(epochs) == 2
	})
	if !served() {
		t.Error("version 1 does not serve")
	}

	workers := fmt.Sprint(p.workers())
	random := make([]byte, ledgerSize)
	_, _ = rand.Read(random)
	for name, damage := range map[string]func() error{
		"random bytes": func() error { return overwrite(l.Path(), random) },
		"torn":         func() error { return tear(l.Path()) },
		"cut to 0":     func() error { return os.Truncate(l.Path(), 0) },
		"cut to 5000":  func() error { return os.Truncate(l.Path(), 5000) },
		"removed":      func() error { return os.Remove(l.Path()) },
		"directory":    func() error { return os.Remove(l.Path()) },
		"open to all":  func() error { return os.Chmod(l.Path(), 0o666) },
	} {
		if err := damage(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// More than the looks that a worker leaves out after a bad ledger.
		for range 40 {
			p.served(4)
			time.Sleep(2 * time.Millisecond)
		}
		if !served() {
			t.Errorf("%s: the last good ledger is not in force", name)
		}
		_ = os.Chmod(l.Path(), 0o644)
		quarantine(l)
		eventually(t, name+": a repaired ledger is read", served)
	}
	if got := fmt.Sprint(p.workers()); got != workers {
		t.Errorf("workers %s, were %s: some died", got, workers)
	}
	if ok, err := l.Lift("q", now); !ok || err != nil {
		t.Fatalf("lift: %v %v", ok, err)
	}
	eventually(t, "the repaired ledger is in force", func() bool { return p.served(8)[first] == 0 })
}

// lookedLocation tells which worker answers and how often it found the ledger
// changed, without having it look.
const lookedLocation = `location /looked { content_by_lua_block {
	ngx.print(ngx.worker.id(), " ", math.min(require("resty.spinguard.ledger").epoch, 1)) } }`

// tear moves the ledger to a bank that quarantines version 1, but whose
// checksum is wrong.
func tear(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, sequence, err := read(f)
	if err != nil {
		return err
	}
	now := time.Now()
	b := encodeBank([]Entry{{ID: "t", Kind: KindVersion, Upstream: "backend", Version: 1, Until: now.Add(time.Minute)}}, now)
	b[bankCRCAt] ^= 1
	_, err = f.WriteAt(b, bankAt(sequence+1))
	_, err2 := f.WriteAt(newHeader(sequence+1), 0)
	return errors.Join(err, err2)
}

// Nobody can cut the crumbs short: a store into them would kill the worker.
func TestCrumbsCannotBeCut(t *testing.T) {
	p := startProxy(t, proxyOptions{})
	pid := p.workers()[0]
	maps, err := procmem.ReadMaps(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if strings.Contains(m.Path, "spinguard-crumbs") {
			err := os.Truncate(fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.Start, m.End), 0)
			if !errors.Is(err, unix.EPERM) {
				t.Errorf("truncate: %v, want it refused", err)
			}
			return
		}
	}
	t.Error("no crumbs are mapped")
}

func overwrite(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

func TestReloadAndRespawnKeepVersions(t *testing.T) {
	p := startProxy(t, proxyOptions{workers: 2})
	p.publish(1, 0)
	p.publish(0, 1)
	l, now := p.ledger(), time.Now()
	if _, err := l.Add(Entry{Kind: KindVersion, Upstream: "backend", Version: 2, Until: now.Add(time.Minute)}, now); err != nil {
		t.Fatal(err)
	}
	first := fmt.Sprint(p.ports[0])
	eventually(t, "version 1 serves", func() bool { return p.served(8)[first] == 8 })
	before := p.workers()
	if err := p.cmd.Process.Signal(unix.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "new workers", func() bool {
		w := p.workers()
		return len(w) == 2 && w[0] != before[0] && w[0] != before[1] && w[1] != before[1]
	})
	if got := p.served(16); got[first] != 16 {
		t.Errorf("after the reload: %v", got)
	}
	for _, pid := range p.workers() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	p.client.CloseIdleConnections()
	eventually(t, "answers after the kill", func() bool { code, _ := p.get("/"); return code == 200 })
	if got := p.served(16); got[first] != 16 {
		t.Errorf("after the kill: %v", got)
	}
	if v := p.publish(1, 1); v != 3 {
		t.Errorf("next version is %d, want 3", v)
	}
}
