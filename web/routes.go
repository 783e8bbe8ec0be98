package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/web/api"
	"go.uber.org/zap"
)

// Handler returns everything that is served. trusted says that whoever reaches
// it may change things without the token: true for the unix socket only.
func (s *Server) Handler(trusted bool) http.Handler {
	mux := http.NewServeMux()
	s.readRoutes(mux)
	s.pageRoutes(mux, trusted)
	changes := map[string]http.HandlerFunc{
		"POST /api/quarantines":        s.apiAdd,
		"DELETE /api/quarantines/{id}": s.apiLift,
		"POST /quarantines/{id}/lift":  s.formLift,
		"POST /quarantines/add":        s.formAdd,
	}
	for pattern, h := range changes {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if !s.mayChange(r, trusted) {
				writeError(w, http.StatusForbidden, "changes need the agent's token (see run_dir) or its unix socket")
				return
			}
			h(w, r)
		})
	}
	mux.HandleFunc("POST /login", s.login)
	var h http.Handler = mux
	if s.o.Private && !trusted {
		h = s.private(h)
	}
	// Refuses changes that another site makes a browser ask for.
	return s.guard(http.NewCrossOriginProtection().Handler(h))
}

func (s *Server) readRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.o.Source.Status()) })
	mux.HandleFunc("GET /api/workers", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.workers()) })
	mux.HandleFunc("GET /api/quarantines", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.quarantines()) })
	mux.HandleFunc("GET /api/classes", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.o.Source.Classes()) })
	mux.HandleFunc("GET /api/signals", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.o.Source.Signals()) })
	mux.HandleFunc("GET /api/settings", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.o.Source.Settings()) })
	mux.HandleFunc("GET /api/incidents", s.apiIncidents)
	mux.HandleFunc("GET /api/incidents/{id}", s.apiIncident)
	mux.HandleFunc("GET /api/incidents/{id}/export", s.export)
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /incidents/{id}/{file}", s.incidentFile)
	if s.o.Metrics != nil {
		mux.Handle("GET /metrics", s.o.Metrics.Handler())
	}
}

// workers and quarantines never return nil: JSON lists are lists.
func (s *Server) workers() []api.WorkerStatus {
	return append([]api.WorkerStatus{}, s.o.Source.Workers()...)
}

func (s *Server) quarantines() []api.Quarantine {
	return append([]api.Quarantine{}, s.o.Source.Quarantines()...)
}

func (s *Server) apiAdd(w http.ResponseWriter, r *http.Request) {
	var q api.QuarantineRequest
	if err := decodeBody(r, &q); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	made, err := s.add(q)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusCreated, made)
}

// apiLift takes the reason from the body or, for curl's sake, from the query.
func (s *Server) apiLift(w http.ResponseWriter, r *http.Request) {
	l := api.Lift{Reason: r.URL.Query().Get("reason")}
	if l.Reason == "" {
		if err := decodeBody(r, &l); err != nil {
			writeError(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	if err := s.lift(r.PathValue("id"), l.Reason); err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func decodeBody(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("body: %s", err)
	}
	return nil
}

// status translates an error into an HTTP status.
func status(err error) int {
	switch {
	case errors.Is(err, incident.ErrNotFound), errors.Is(err, ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, incident.ErrBadID), errors.Is(err, incident.ErrBadFile), errors.Is(err, ErrRefused):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// fail answers with an error, and logs it if it is ours.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	code := status(err)
	if code == http.StatusInternalServerError {
		s.o.Log.Warn("request failed", zap.String("path", r.URL.Path), zap.Error(err))
	}
	writeError(w, code, err.Error())
}

func writeError(w http.ResponseWriter, code int, text string) {
	writeJSON(w, code, api.Error{Error: text})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(`{"error": "an answer that is no JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n')) // the client has gone: nobody to tell
}

func quoted(s string) string { return fmt.Sprintf("%.80q", s) }
