package watchdog

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/watchdog/config"
)

// slowDisk lets a writer wait until the test goes on.
func slowDisk(w *writer) (goOn func()) {
	wait := make(chan struct{})
	w.put(task{do: func() func() { <-wait; return nil }})
	return func() { close(wait) }
}

func TestWriterKeepsOrderAndTheNewestState(t *testing.T) {
	var w writer
	goOn := slowDisk(&w)
	var did []string
	note := func(name string) task {
		return task{do: func() func() { did = append(did, name); return func() { did = append(did, "after "+name) } }}
	}
	state := func(id, name string) task {
		return task{whole: id, do: func() func() { did = append(did, name); return nil }}
	}
	for _, p := range []task{note("evidence"), state("1", "old"), state("2", "other"), state("1", "new"), note("last")} {
		if !w.put(p) {
			t.Fatal("refused")
		}
	}
	goOn()
	w.close()
	w.finish()
	want := []string{"evidence", "new", "other", "last", "after evidence", "after last"}
	if !slices.Equal(did, want) {
		t.Errorf("did %q, want %q", did, want)
	}
}

func TestWriterIsBoundedAndLosesNoState(t *testing.T) {
	var w writer
	goOn := slowDisk(&w)
	did, taken := 0, 0
	for range 3 * writerQueue {
		if w.put(task{do: func() func() { did++; return nil }}) {
			taken++
		}
	}
	if taken < writerQueue-1 || taken > writerQueue { // the slow one may wait, too
		t.Errorf("took %d tasks, want about %d", taken, writerQueue)
	}
	if !w.put(task{whole: "1", do: func() func() { did++; return nil }}) {
		t.Error("the state of an incident was refused")
	}
	goOn()
	w.close()
	if did != taken+1 {
		t.Errorf("did %d of %d", did, taken+1)
	}
}

const loopingNginx = `
load_module %[3]s/ndk_http_module.so;
load_module %[3]s/ngx_http_lua_module.so;
user root; worker_processes %[4]d; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
events { worker_connections 256; }
http {
  access_log off;
  server {
    listen 127.0.0.1:%[2]d;
    location /loop { content_by_lua_block { while true do end } }
    location / { return 200; }
  }
}
`

// stuckAgent is one whose disk is slow while all workers of an nginx are stuck.
func stuckAgent(t *testing.T, workers int) (a *Agent, goOn, stop func()) {
	base, master := startNginx(t, loopingNginx, "/", workers)
	a, stop = startAgent(t, t.TempDir(), config.Enforce, func(c *config.Config) { c.Thresholds.ActAfter = 400 * time.Millisecond }, master)
	goOn = slowDisk(&a.writer)
	waitFor(t, "all workers are seen", func() bool { return len(a.Workers()) == workers })
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	for n := range workers {
		go func() {
			if r, err := client.Get(base + "/loop"); err == nil {
				_ = r.Body.Close()
			}
		}()
		// The loop judges one while the evidence of the other waits for the disk.
		waitFor(t, fmt.Sprintf("%d stuck for longer than an action needs", n+1), func() bool {
			stuck := 0
			for _, w := range a.Workers() {
				if w.Verdict == "runaway" && w.StallMS > 500 {
					stuck++
				}
			}
			return stuck == n+1
		})
	}
	return a, goOn, stop
}

func TestTheLoopGoesOnWhileEvidenceIsWritten(t *testing.T) {
	a, goOn, _ := stuckAgent(t, 2)
	err := a.ask(func() error {
		for _, e := range a.episodes {
			if e.written || e.response.Evictions() > 0 || len(e.members) != 2 {
				t.Errorf("written %v, %d evicted, %d stuck; want one incident of two workers, and nothing done before its evidence is on disk",
					e.written, e.response.Evictions(), len(e.members))
			}
		}
		if len(a.episodes) != 1 {
			t.Errorf("%d incidents, want 1", len(a.episodes))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	goOn()
	var inc *incident.Incident
	waitFor(t, "recovered", func() bool {
		list, err := a.store.List(incident.Filter{})
		if err != nil || len(list) != 1 {
			return false
		}
		inc, err = a.store.Load(list[0].ID)
		return err == nil && inc.Outcome == incident.Recovered
	})
	if c, e := inc.Timeline.Captured, inc.Timeline.Evicted; c == nil || e == nil || *c > *e || inc.WorkersEvicted != 2 {
		t.Errorf("%d evicted, timeline %+v; want evidence before the evictions of 2", inc.WorkersEvicted, inc.Timeline)
	}
}

func TestAnAgentThatEndsHasWrittenItsEvidence(t *testing.T) {
	a, goOn, stop := stuckAgent(t, 1)
	time.AfterFunc(50*time.Millisecond, goOn) // while it is told to end
	stop()
	store, err := incident.OpenReadOnly(filepath.Join(a.cfg.StateDir, "incidents"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	list, err := store.List(incident.Filter{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d incidents, %v; want 1", len(list), err)
	}
	inc, err := store.Load(list[0].ID)
	if err != nil || inc.Timeline.Captured == nil || len(inc.Evidence.Frames) == 0 || inc.Samples.Shown == 0 {
		t.Errorf("%v, %+v", err, inc)
	}
}
