package watchdog

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/proxy/haproxyctl"
	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/web/api"
)

// serverHold is a server of HAProxy that the agent took out of its backend. It
// is kept in the state directory, so that an agent that starts later puts the
// server back.
type serverHold struct {
	ID      string    `json:"id"`
	Proxy   string    `json:"proxy"` // name, stable over restarts of HAProxy
	Sockets []string  `json:"sockets"`
	Backend string    `json:"backend"`
	Server  string    `json:"server"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	By      string    `json:"by"`
	Reason  string    `json:"reason"`
	Origin  string    `json:"origin"`
	PID     int       `json:"pid"`   // process that was told
	Start   uint64    `json:"start"` // its start time: a pid alone may be reused
	Lifted  bool      `json:"lifted"`
	Pending bool      `json:"pending"` // noted before HAProxy was told

	How    config.Quarantine `json:"how"`    // empty, as older agents wrote: maint
	Weight int               `json:"weight"` // what it was before, if How is weight

	busy  bool          // a session is on its way
	retry time.Duration // not before
	told  string        // the last failure, said once
}

// The holds are looked at this often; a failed session is repeated after
// holdRetry, a hold whose proxy does not come back is dropped after holdGone.
const (
	holdEvery = 200 * time.Millisecond
	holdRetry = 3 * time.Second
	holdGone  = time.Hour
	holdsMax  = 256
)

// serverOf returns the server that a HAProxy thread works for, and why there is
// none.
func (w *worker) serverOf() (backend, server, why string) {
	c := w.context
	switch {
	case w.streams == nil:
		return "", "", "its frontends and backends can't be told"
	case c.Backend == "" && c.Frontend == "":
		return "", "", "the stuck thread works for no stream that could be told"
	case c.Server == "":
		return "", "", fmt.Sprintf("the stuck thread works for frontend %q, backend %q, where no server is chosen", c.Frontend, c.Backend)
	case len(w.in.StatsSock) == 0:
		return "", "", fmt.Sprintf("server %q of backend %q is concerned, but HAProxy's configuration has no stats socket", c.Server, c.Backend)
	}
	return c.Backend, c.Server, ""
}

// holdServer takes the culprit of an incident out of its backend. The session
// runs beside the loop; the incident's next step waits for it.
func (a *Agent) holdServer(e *episode, until time.Time, why string) {
	pid, start := e.in.worker()
	now := a.clock.wall()
	h := &serverHold{
		ID: holdID(), Proxy: e.in.Name, Sockets: slices.Clone(e.in.StatsSock), Backend: e.culprit.Upstream, Server: e.culprit.Server,
		Since: now.Round(0), Until: until.Round(0), By: "agent", Reason: e.inc.ID + ": " + why, Origin: a.cfg.Node, PID: pid, Start: start, Pending: true, How: a.cfg.HAProxy.Quarantine,
	}
	if len(a.holds) >= holdsMax {
		a.quarantined(e, until, why, fmt.Errorf("%d servers are held already", len(a.holds)))
		return
	}
	// Noted first: an agent that dies in between must still put it back.
	a.holds = append(a.holds, h)
	if err := a.saveHolds(); err != nil {
		a.holds = a.holds[:len(a.holds)-1]
		a.quarantined(e, until, why, fmt.Errorf("the quarantine can't be noted, and would never end: %w", err))
		return
	}
	e.pending, h.busy = true, true
	addresses, told := h.addresses(e.in), *h
	go func() {
		weight, err := takeOut(addresses, told)
		a.jobs <- func() {
			h.busy, h.Pending, h.Weight = false, false, weight
			if err != nil {
				a.dropHold(h)
			}
			a.logSave()
			a.quarantined(e, until, why, err)
		}
	}()
}

func holdID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "h-" + hex.EncodeToString(b[:])
}

// worker returns the process that serves: HAProxy has one, apart from old ones
// that end.
func (in *instance) worker() (pid int, start uint64) {
	for _, w := range in.Workers {
		if !w.Exiting && (pid == 0 || w.StartTime > start) {
			pid, start = w.PID, w.StartTime
		}
	}
	return pid, start
}

func (h *serverHold) addresses(in *instance) []string {
	pid, _ := in.worker()
	var list []string
	for _, socket := range h.Sockets {
		list = append(list, haproxyctl.Addresses(socket, pid, in.Master)...)
	}
	return list
}

func session(addresses []string) (*haproxyctl.Conn, error) {
	c, err := haproxyctl.DialAny(context.Background(), addresses)
	if err != nil {
		return nil, err
	}
	if err := c.CheckAdmin(); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

var errNoServer = errors.New("no such server")

func find(c *haproxyctl.Conn, backend, server string) (haproxyctl.Server, error) {
	list, err := c.Servers(backend)
	if err != nil {
		return haproxyctl.Server{}, err
	}
	for _, s := range list {
		if s.Backend == backend && s.Name == server {
			return s, nil
		}
	}
	return haproxyctl.Server{}, fmt.Errorf("%w %q in backend %q", errNoServer, server, backend)
}

// heldServers counts the servers that are held of a backend, apart from one,
// and how many servers the backend is known to have.
func (a *Agent) heldServers(e *episode) (servers, held int) {
	if main := e.mainMember(); main != nil && main.w != nil && main.w.streams != nil {
		servers = main.w.streams.Servers(e.culprit.Upstream)
	}
	for _, h := range a.holds {
		if h.Proxy == e.in.Name && h.Backend == e.culprit.Upstream && h.Server != e.culprit.Server {
			held++
		}
	}
	return servers, held
}

func (h *serverHold) view() api.Quarantine {
	return api.Quarantine{ID: h.ID, Proxy: h.Proxy, Upstream: h.Backend, Server: h.Server, Since: h.Since, Until: h.Until, By: h.By, Reason: h.Reason, Origin: h.Origin}
}

func (a *Agent) holdViews() []api.Quarantine {
	var list []api.Quarantine
	for _, h := range a.holds {
		if !h.Lifted && !h.Pending {
			list = append(list, h.view())
		}
	}
	slices.SortFunc(list, func(x, y api.Quarantine) int { return cmp.Compare(x.ID, y.ID) })
	return list
}

func (a *Agent) dropHold(h *serverHold) {
	a.holds = slices.DeleteFunc(a.holds, func(x *serverHold) bool { return x == h })
}

func (a *Agent) logSave() {
	if err := a.saveHolds(); err != nil {
		a.log.Error("held servers can't be noted", zap.Error(err))
	}
}

// canHold says that a quarantine of the proxy goes over its runtime API.
func (in *instance) canHold() bool { return in.Kind == proxy.HAProxy && len(in.StatsSock) > 0 }

// HAProxy's own watchdog ends the process after 2 s of CPU time in one turn of
// a thread. A server is taken out before, since that can be taken back.
const haproxyActAfter = time.Second

// actAfter returns how long a stall of the proxy must last before something is
// done about it.
func (a *Agent) actAfter(in *instance) time.Duration {
	if in.Kind == proxy.HAProxy {
		return min(a.cfg.Thresholds.ActAfter, haproxyActAfter)
	}
	return a.cfg.Thresholds.ActAfter
}
