package watchdog

import (
	"cmp"
	"strings"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/judge"
)

// awakeMost bounds the descriptors that are named.
const awakeMost = 4

// keptAwake tells what the event loop of a spinning worker is woken by.
func (a *Agent) keptAwake(e *episode, w *worker) {
	if w.decision.Verdict != judge.Spinning {
		return
	}
	list, err := proxy.AlwaysReady(w.PID)
	if err != nil {
		a.log.Debug("what keeps the worker awake can't be told", zap.Int("pid", w.PID), zap.Error(err))
		return
	}
	var texts []string
	for _, r := range list[:min(len(list), awakeMost)] {
		texts = append(texts, r.String())
		e.inc.Evidence.Peer = cmp.Or(e.inc.Evidence.Peer, r.Peer)
	}
	if len(texts) == 0 {
		return
	}
	e.awake = "; kept awake by " + strings.Join(texts, "; ")
	e.note(a.now(e), "note", strings.TrimPrefix(e.awake, "; "))
}
