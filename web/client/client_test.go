package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/web"
	"github.com/spinguard/spinguard/web/api"
	"github.com/spinguard/spinguard/web/client"
)

// source is an agent with one worker and one quarantine.
type source struct{ lifted string }

func (*source) Status() api.Status           { return api.Status{Node: "lb-7", Mode: "observe"} }
func (s *source) Glance() []api.WorkerStatus { return s.Workers() }

func (*source) Workers() []api.WorkerStatus {
	return []api.WorkerStatus{{Proxy: "p", Index: 1, Verdict: "healthy"}}
}
func (*source) Quarantines() []api.Quarantine {
	return []api.Quarantine{{ID: "q1", Upstream: "shop"}}
}
func (*source) Add(q api.QuarantineRequest) (api.Quarantine, error) {
	return api.Quarantine{ID: "q2", Upstream: q.Upstream, Reason: q.Reason}, nil
}
func (s *source) Lift(id, reason string) error {
	s.lifted = id + ": " + reason
	return nil
}
func (*source) Classes() []api.Class { return []api.Class{{Route: "GET /*"}} }
func (*source) Signals() api.Signals { return api.Signals{Restarts: map[string]uint64{"p": 1}} }
func (*source) Settings() any        { return nil }

// agent starts an agent's server on a socket and returns a client for it.
func agent(t *testing.T) (*client.Client, *source, *incident.Incident) {
	t.Helper()
	dir := t.TempDir()
	st, err := incident.Open(filepath.Join(dir, "incidents"), incident.Retention{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 11, 30, 1, 57, 49, 0, time.UTC)
	inc := &incident.Incident{ID: incident.NewID(began, nil), Proxy: "p", Verdict: "runaway", Began: began}
	if err := st.Create(inc, nil); err != nil {
		t.Fatal(err)
	}
	l, err := web.ListenUnix(filepath.Join(dir, "agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	src := &source{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- web.New(web.Options{Source: src, Incidents: st}).Serve(ctx, l) }()
	c := client.New(filepath.Join(dir, "agent.sock"))
	t.Cleanup(func() {
		c.Close()
		cancel()
		if err := errors.Join(<-done, st.Close()); err != nil {
			t.Error(err)
		}
	})
	return c, src, inc
}

func TestClient(t *testing.T) {
	c, src, inc := agent(t)
	ctx := t.Context()
	if s, err := c.Status(ctx); err != nil || s.Node != "lb-7" {
		t.Errorf("status: %+v %v", s, err)
	}
	if list, err := c.Workers(ctx); err != nil || len(list) != 1 {
		t.Errorf("workers: %+v %v", list, err)
	}
	if list, err := c.Incidents(ctx, incident.Filter{Verdict: "runaway", Proxy: "p", Limit: 3}); err != nil || len(list) != 1 || list[0].ID != inc.ID {
		t.Errorf("incidents: %+v %v", list, err)
	}
	if list, err := c.Incidents(ctx, incident.Filter{Verdict: "blocked"}); err != nil || len(list) != 0 {
		t.Errorf("blocked incidents: %+v %v", list, err)
	}
	if got, err := c.Incident(ctx, inc.ID); err != nil || got.Story != incident.Story(inc) {
		t.Errorf("incident: %+v %v", got, err)
	}
	var b bytes.Buffer
	if err := c.Export(ctx, inc.ID, &b); err != nil || !strings.HasPrefix(b.String(), "\x1f\x8b") {
		t.Errorf("export: %q %v", b.Bytes(), err)
	}
	if list, err := c.Quarantines(ctx); err != nil || len(list) != 1 {
		t.Errorf("quarantines: %+v %v", list, err)
	}
	if q, err := c.Add(ctx, api.QuarantineRequest{Proxy: "p", Upstream: "shop", Version: "2", Reason: "r"}); err != nil || q.ID != "q2" {
		t.Errorf("add: %+v %v", q, err)
	}
	if err := c.Lift(ctx, "q1", "checked"); err != nil || src.lifted != "q1: checked" {
		t.Errorf("lift: %q %v", src.lifted, err)
	}
}

func TestAnswersThatAreErrors(t *testing.T) {
	c, src, _ := agent(t)
	var se *client.StatusError
	if err := c.Lift(t.Context(), "q1", ""); !errors.As(err, &se) || se.Code != 400 || !strings.Contains(se.Text, "reason is missing") || src.lifted != "" {
		t.Errorf("lift without a reason: %v", err)
	}
	if _, err := c.Incident(t.Context(), "../../etc"); !errors.As(err, &se) || se.Code != 400 {
		t.Errorf("bad id: %v", err)
	}
	if err := c.Export(t.Context(), incident.NewID(time.Time{}, nil), io.Discard); !errors.As(err, &se) || se.Code != 404 {
		t.Errorf("unknown id: %v", err)
	}
}

func TestNoAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.sock")
	if _, err := client.New(path).Workers(t.Context()); !errors.Is(err, client.ErrNoAgent) || !strings.Contains(err.Error(), path) {
		t.Errorf("no socket: %v", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.New(path).Workers(t.Context()); !errors.Is(err, client.ErrNoAgent) {
		t.Errorf("dead socket: %v", err)
	}
}
