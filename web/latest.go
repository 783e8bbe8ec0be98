package web

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spinguard/spinguard/incident"
)

// latest leads to the newest incident of a proxy or verdict, also as it was at
// some time: metrics and alerts have no label for an incident's id, which would
// be without bound, but they know when it began.
//
// at is in seconds since 1970, as Prometheus and Grafana count; file leads to
// one file of the incident, such as flamegraph.svg, if it has it, instead of its
// page.
func (s *Server) latest(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f := incident.Filter{Verdict: q.Get("verdict"), Proxy: q.Get("proxy"), Limit: 1}
	if text := q.Get("at"); text != "" {
		at, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(at) || at < 0 || at > 1e11 {
			s.failPage(w, r, fmt.Errorf("%w: at %.40q is no time in seconds since 1970", ErrRefused, text))
			return
		}
		f.Before = incident.Until(time.UnixMilli(int64(math.Round(at * 1000))))
	}
	list, err := s.o.Incidents.List(f)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%w: no incident like that is kept on this node", ErrNotFound)
	}
	if err != nil {
		s.failPage(w, r, err)
		return
	}
	to := "/incidents/" + list[0].ID + "/"
	files, err := s.o.Incidents.Files(list[0].ID)
	if err == nil && slices.ContainsFunc(files, func(f incident.FileInfo) bool { return f.Name == q.Get("file") }) {
		to += url.PathEscape(q.Get("file"))
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}
