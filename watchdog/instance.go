package watchdog

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/proxy"
)

// instance is one watched proxy.
type instance struct {
	proxy.Proxy
	ledger     *balancer.Ledger // nil: its balancer does not read one, or none was found yet
	ledgerPath string
	note       string // what of it can't be done, and why
	upstreams  map[string]bool
	entries    []balancer.Entry // in force, as last read
	readAt     time.Duration
	usual      usual
}

// Upstreams are learned from crumbs, which the proxy writes: the set is bounded.
const upstreamsMax = 10_000

func (in *instance) close() {
	if in.ledger != nil {
		_ = in.ledger.Close()
	}
}

// learn remembers an upstream that a worker was seen to pick for.
func (in *instance) learn(upstream string) {
	if upstream != "" && len(in.upstreams) < upstreamsMax {
		in.upstreams[upstream] = true
	}
}

// openLedger opens the ledger that a worker has mapped. A ledger that can't be
// trusted is said once and left alone.
func (in *instance) openLedger(path string, now time.Time, log *zap.Logger) {
	if path == "" || path == in.ledgerPath {
		return
	}
	in.ledgerPath = path
	ledger, err := balancer.OpenLedger(path)
	if err != nil {
		in.note = "no quarantine: " + err.Error()
		log.Error("ledger can't be used; quarantines of this proxy are not possible", zap.String("proxy", in.Name), zap.Error(err))
		return
	}
	in.close()
	in.ledger, in.note = ledger, ""
	if err := ledger.Rebase(now); err != nil {
		log.Warn("ledger could not be checked for a clock that was set back", zap.String("proxy", in.Name), zap.Error(err))
	}
}

// quarantines returns what is in force in the ledger. It reads the file at
// most twice a second, because pages and rails ask often.
func (in *instance) quarantines(wall time.Time, mono time.Duration, log *zap.Logger) []balancer.Entry {
	if in.ledger == nil || (in.readAt != 0 && mono-in.readAt < 500*time.Millisecond) {
		return in.entries
	}
	in.readAt = mono
	entries, err := in.ledger.List(wall)
	if err != nil && in.note == "" {
		in.note = "ledger: " + err.Error()
		log.Warn("could not read the ledger", zap.String("proxy", in.Name), zap.Error(err))
	}
	if err == nil {
		in.entries, in.note = entries, ""
	}
	return in.entries
}

// refusedUpstreams counts the upstreams with a version in quarantine.
func refusedUpstreams(entries []balancer.Entry, but string) int {
	seen := map[string]bool{}
	for _, e := range entries {
		if e.Kind == balancer.KindVersion && e.Upstream != but {
			seen[e.Upstream] = true
		}
	}
	return len(seen)
}

// errNoWay means that nothing in the proxy would read a quarantine.
var errNoWay = errors.New("the proxy's balancer reads no ledger, and no quarantine_hook is configured")

// exempt says why workers of a proxy are never evicted.
func (in *instance) exempt() string {
	switch {
	case in.Kind == proxy.HAProxy:
		return "a thread of HAProxy can't be replaced alone: its end is the end of all"
	case in.Kind == proxy.Go:
		return "a Go proxy is one process: its end is the end of all"
	case in.MasterGone:
		return fmt.Sprintf("its master %d has ended: nobody would start a successor", in.Master)
	}
	return ""
}
