package watchdog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/web/api"
)

// holdsFile keeps the held servers in the state directory.
const holdsFile = "haproxy-servers.json"

// keepHolds puts servers back whose time is over, and tells HAProxy processes
// that were started since: they know of no maintenance.
func (a *Agent) keepHolds(now time.Duration) {
	if len(a.holds) == 0 || now-a.holdsAt < holdEvery {
		return
	}
	a.holdsAt = now
	wall := a.clock.wall().Round(0) // ends are wall time, and move with it (see clockSet)
	for _, h := range append([]*serverHold(nil), a.holds...) {
		if h.busy || now < h.retry {
			continue
		}
		in := a.proxyNamed(h.Proxy)
		over := h.Lifted || h.Pending || !wall.Before(h.Until)
		switch {
		case in == nil && wall.Sub(h.Until) > holdGone:
			a.log.Info("a held server is forgotten: its HAProxy did not come back", zap.String("id", h.ID))
			a.dropHold(h)
			a.logSave()
		case in == nil:
		case over:
			a.endHold(h, in)
		default:
			a.renewHold(h, in)
		}
	}
}

func (a *Agent) proxyNamed(name string) *instance {
	for _, in := range a.instances {
		if in.Name == name && in.canHold() && len(in.Workers) > 0 {
			return in
		}
	}
	return nil
}

func (a *Agent) endHold(h *serverHold, in *instance) {
	addresses, told := h.addresses(in), *h
	h.busy = true
	go func() {
		err := putBack(addresses, told)
		a.jobs <- func() {
			h.busy = false
			if err != nil && !errors.Is(err, errNoServer) {
				a.holdFailed(h, "a server could not be put back; it is tried again", err)
				return
			}
			a.dropHold(h)
			a.logSave()
			a.log.Warn("server put back", zap.String("id", h.ID), zap.String("backend", h.Backend), zap.String("server", h.Server))
			a.feed.Publish(api.Event{At: a.clock.wall(), Kind: "lifted", Proxy: h.Proxy, Text: fmt.Sprintf("server %s of backend %s is back", h.Server, h.Backend)})
		}
	}()
}

// renewHold tells a new process of HAProxy.
func (a *Agent) renewHold(h *serverHold, in *instance) {
	pid, start := in.worker()
	if pid == 0 || pid == h.PID && start == h.Start {
		return
	}
	addresses, told := h.addresses(in), *h
	h.busy = true
	go func() {
		weight, err := takeOut(addresses, told)
		a.jobs <- func() {
			h.busy = false
			switch {
			case errors.Is(err, errNoServer):
				a.dropHold(h)
				a.log.Info("a held server is forgotten: the new configuration has it no more", zap.String("id", h.ID))
			case err != nil && !errors.Is(err, errNotOurs):
				a.holdFailed(h, "a new process of HAProxy could not be told of a held server; it is tried again", err)
				return
			default:
				h.PID, h.Start, h.Weight = pid, start, weight
				a.log.Warn("server held in a new process", zap.String("id", h.ID), zap.String("server", h.Server), zap.Int("pid", pid))
			}
			a.logSave()
		}
	}()
}

func (a *Agent) holdFailed(h *serverHold, what string, err error) {
	h.retry = a.clock.mono() + holdRetry
	if h.told != err.Error() {
		h.told = err.Error()
		a.log.Error(what, zap.String("id", h.ID), zap.String("backend", h.Backend), zap.String("server", h.Server), zap.Error(err))
	}
}

// liftHold ends a hold by hand. It says whether there is one with the id.
func (a *Agent) liftHold(id, reason string) bool {
	for _, h := range a.holds {
		if h.ID != id || h.Lifted {
			continue
		}
		h.Lifted, h.retry = true, 0
		if len(a.manual) < 1024 {
			a.manual[h.Proxy+"\x00"+h.Backend+"\x00server "+h.Server] = true
		}
		a.logSave()
		a.log.Warn("quarantine lifted by hand", zap.String("id", id), zap.String("backend", h.Backend), zap.String("server", h.Server), zap.String("reason", reason))
		return true
	}
	return false
}

// saveHolds writes the held servers: whole, or not at all.
func (a *Agent) saveHolds() error {
	path := filepath.Join(a.cfg.StateDir, holdsFile)
	text, err := json.MarshalIndent(a.holds, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(a.cfg.StateDir, holdsFile+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// loadHolds reads what an agent before this one held.
func (a *Agent) loadHolds() {
	f, err := os.Open(filepath.Join(a.cfg.StateDir, holdsFile))
	if err != nil {
		if !os.IsNotExist(err) {
			a.log.Error("held servers can't be read", zap.Error(err))
		}
		return
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err == nil {
		a.holds, err = parseHolds(text)
	}
	if err != nil {
		a.log.Error("held servers can't be read: look for servers in maintenance yourself", zap.String("file", f.Name()), zap.Error(err))
	}
	for _, h := range a.holds {
		if ahead := h.Since.Sub(a.clock.wall()); ahead > jumpMin { // set back while no agent ran
			h.Since, h.Until = h.Since.Add(-ahead), h.Until.Add(-ahead)
		}
	}
}

func parseHolds(text []byte) ([]*serverHold, error) {
	var list []*serverHold
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s at byte %d: %v", holdsFile, dec.InputOffset(), err)
	}
	kept := list[:0]
	for _, h := range list[:min(len(list), holdsMax)] {
		if h != nil && h.ID != "" && h.Proxy != "" && h.Backend != "" && h.Server != "" {
			kept = append(kept, h)
		}
	}
	return kept, nil
}
