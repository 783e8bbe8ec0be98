package web

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/web/api"
	"go.uber.org/zap"
)

// add checks a quarantine made by hand and passes it on.
func (s *Server) add(q api.QuarantineRequest) (api.Quarantine, error) {
	if err := checkRequest(q); err != nil {
		return api.Quarantine{}, err
	}
	made, err := s.o.Source.Add(q)
	if err == nil {
		s.o.Log.Info("quarantine added by hand", zap.String("id", made.ID), zap.String("upstream", q.Upstream), zap.String("reason", q.Reason))
	}
	return made, err
}

func checkRequest(q api.QuarantineRequest) error {
	set := 0
	for _, v := range []string{q.Version, q.Peer, q.Route, q.Server} {
		if v != "" {
			set++
		}
	}
	switch {
	case q.Upstream == "" && (q.Route == "" || q.Server != ""):
		return fmt.Errorf("%w: upstream is missing", ErrRefused)
	case set != 1:
		return fmt.Errorf("%w: exactly one of version, peer, route and server is needed", ErrRefused)
	case strings.TrimSpace(q.Reason) == "":
		return fmt.Errorf("%w: reason is missing; the next person on call will ask for it", ErrRefused)
	case q.Seconds < 0 || math.IsNaN(q.Seconds) || q.Seconds > 86400:
		return fmt.Errorf("%w: seconds %g is not between 0 and 86400", ErrRefused, q.Seconds)
	}
	return nil
}

// lift ends a quarantine by hand, with a reason for the record.
func (s *Server) lift(id, reason string) error {
	reason = strings.TrimSpace(reason)
	if reason == "" {
		return fmt.Errorf("%w: reason is missing; the next person on call will ask for it", ErrRefused)
	}
	if len(reason) > 500 {
		return fmt.Errorf("%w: reason of %d bytes, 500 are enough", ErrRefused, len(reason))
	}
	if err := s.o.Source.Lift(id, reason); err != nil {
		return err
	}
	s.o.Log.Info("quarantine lifted by hand", zap.String("id", id), zap.String("reason", reason))
	return nil
}

func (s *Server) formLift(w http.ResponseWriter, r *http.Request) {
	if err := s.lift(r.PathValue("id"), r.PostFormValue("reason")); err != nil {
		s.failPage(w, r, err)
		return
	}
	http.Redirect(w, r, "/quarantines", http.StatusSeeOther)
}

func (s *Server) formAdd(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.ParseFloat("0"+r.PostFormValue("seconds"), 64)
	if err != nil {
		s.failPage(w, r, fmt.Errorf("%w: seconds is no number", ErrRefused))
		return
	}
	_, err = s.add(api.QuarantineRequest{
		Proxy: r.PostFormValue("proxy"), Upstream: r.PostFormValue("upstream"), Version: r.PostFormValue("version"),
		Peer: r.PostFormValue("peer"), Route: r.PostFormValue("route"), Server: r.PostFormValue("server"), Seconds: seconds, Reason: r.PostFormValue("reason"),
	})
	if err != nil {
		s.failPage(w, r, err)
		return
	}
	http.Redirect(w, r, "/quarantines", http.StatusSeeOther)
}
