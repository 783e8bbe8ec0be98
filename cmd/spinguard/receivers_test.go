package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/spinguard/spinguard/notify"
)

// A worker of a real nginx blocks: the webhook is told, the profile is pushed,
// and the end is told too, by the next agent after this one was killed.
func TestReceiversAreToldOfARealIncident(t *testing.T) {
	events, profiles, otlp := make(chan notify.Event, 10), make(chan *profile.Profile, 10), make(chan *collector.ExportProfilesServiceRequest, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/v1development/profiles" {
			otlp <- decodeOTLP(t, body)
			return
		}
		if r.URL.Path == "/ingest" {
			p, err := profile.ParseData(body)
			if err != nil {
				t.Error(err)
			}
			profiles <- p
			return
		}
		var e notify.Event
		if err := json.Unmarshal(body, &e); err != nil {
			t.Error(err)
		}
		events <- e
	}))
	defer server.Close()
	address, master := startNginx(t)
	a := startAgent(t, fmt.Sprintf("masters: [%[1]d]\nnotify: {webhook: '%[2]s/hook', page: 'http://lb-7:9517'}\nexport: {pyroscope: '%[2]s', otlp: '%[2]s'}\n", master, server.URL))
	quick := http.Client{Timeout: 300 * time.Millisecond}
	a.eventually("the worker is watched", func() bool {
		list, err := a.client.Workers(t.Context())
		return err == nil && len(list) == 1
	})
	_, _ = quick.Get("http://" + address + "/sleep") // its answer is not waited for
	opened := wait(t, a, events)
	if opened.Kind != notify.Opened || opened.Verdict != "blocked" || !strings.Contains(opened.Request, "/sleep") || opened.Link != "http://lb-7:9517/incidents/"+opened.Incident {
		t.Errorf("opened: %+v", opened)
	}
	if p := wait(t, a, profiles); p == nil || len(p.Sample) == 0 {
		t.Errorf("profile %v", p)
	}
	if m := wait(t, a, otlp); len(m.Dictionary.StackTable) < 2 {
		t.Errorf("OTLP %v", m)
	}
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
	a.restart()
	ended := wait(t, a, events)
	for ended.Key == opened.Key { // killed before it saw our answer, it tells again
		ended = wait(t, a, events)
	}
	if ended.Kind != notify.Ended || ended.Incident != opened.Incident {
		t.Errorf("ended: %+v", ended)
	}
}

func decodeOTLP(t *testing.T, body []byte) *collector.ExportProfilesServiceRequest {
	var m collector.ExportProfilesServiceRequest
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err == nil {
		body, err = io.ReadAll(z)
	}
	if err == nil {
		err = proto.Unmarshal(body, &m)
	}
	if err != nil {
		t.Error(err)
	}
	return &m
}

func wait[T any](t *testing.T, a *agentProcess, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("nothing came; the agent's log:\n%s", a.log.String())
		panic("not reached")
	}
}

// restart starts the agent again, over the same folders.
func (a *agentProcess) restart() {
	a.t.Helper()
	args := a.cmd.Args
	a.cmd = exec.Command(args[0], args[1:]...)
	a.cmd.Stdout, a.cmd.Stderr = a.log, a.log
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
}
