package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/spinguard/spinguard/web/api"
)

// liftQuarantine plays the operator: once a worker is evicted it lifts the
// agent's quarantine. A word that does not get through is said again at the
// next look.
func (r *runner) liftQuarantine(ctx context.Context) {
	main := r.main()
	if !r.sc.lift || r.lifted || r.opt.Mode != ModeEnforce || main == nil || main.Timeline.Evicted == nil {
		return
	}
	a := r.lab.daemon
	var list []api.Quarantine
	if a.get(ctx, "/api/quarantines", &list) != nil || len(list) == 0 {
		return
	}
	if r.lifted = a.lift(ctx, list[0].ID); r.lifted {
		r.say("note", "an operator lifts the quarantine of %s version %s", list[0].Upstream, list[0].Version)
	}
}

// lift asks the agent to end a quarantine and says whether it did.
func (a *agent) lift(ctx context.Context, id string) bool {
	body, err := json.Marshal(api.Lift{Reason: "drill: we need this version"})
	if err != nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://spinguard/api/quarantines/"+url.PathEscape(id), bytes.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.web.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode < 300
}
