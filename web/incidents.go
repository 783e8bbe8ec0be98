package web

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"

	"github.com/spinguard/spinguard/incident"
)

const (
	defaultLimit = 100
	maxLimit     = 10_000
)

// filterOf reads verdict, proxy, before and limit from the query.
func filterOf(r *http.Request) (incident.Filter, error) {
	q := r.URL.Query()
	f := incident.Filter{Verdict: q.Get("verdict"), Proxy: q.Get("proxy"), Limit: defaultLimit}
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxLimit {
			return f, fmt.Errorf("%w: limit %.20q is not between 1 and %d", ErrRefused, s, maxLimit)
		}
		f.Limit = n
	}
	if f.Before = q.Get("before"); f.Before != "" {
		if err := incident.CheckID(f.Before); err != nil {
			return f, err
		}
	}
	return f, nil
}

// older is the address of the page after this one: it goes on before the last
// id that was shown, so that new incidents move nothing.
func older(f incident.Filter, list []incident.Summary) string {
	if len(list) < f.Limit {
		return ""
	}
	f.Before = list[len(list)-1].ID
	return address(f)
}

func newest(f incident.Filter) string {
	if f.Before == "" {
		return ""
	}
	f.Before = ""
	return address(f)
}

func address(f incident.Filter) string {
	q := url.Values{}
	for name, value := range map[string]string{"verdict": f.Verdict, "proxy": f.Proxy, "before": f.Before} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Limit != defaultLimit {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return "/incidents?" + q.Encode()
}

func (s *Server) apiIncidents(w http.ResponseWriter, r *http.Request) {
	f, err := filterOf(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list, err := s.o.Incidents.List(f)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, list)
}

func (s *Server) apiIncident(w http.ResponseWriter, r *http.Request) {
	inc, err := s.o.Incidents.Load(r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, inc)
}

func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if _, err := s.o.Incidents.Files(id); err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", id+".tar.gz"))
	if err := s.o.Incidents.Export(id, w); err != nil {
		// The status is sent already: break the connection, so that nobody
		// takes half an archive for a whole one.
		panic(http.ErrAbortHandler)
	}
}

// fileTypes are the files that a browser may show; the rest is a download.
var fileTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json",
}

// incidentFile serves one file of an incident, under a policy that keeps what
// is in it from touching this page.
func (s *Server) incidentFile(w http.ResponseWriter, r *http.Request) {
	id, name := r.PathValue("id"), r.PathValue("file")
	f, err := s.o.Incidents.File(id, name)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", filePolicy)
	h.Set("Content-Length", strconv.FormatInt(fi.Size(), 10))
	if t, ok := fileTypes[path.Ext(name)]; ok {
		h.Set("Content-Type", t)
	} else {
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", id+"-"+name))
	}
	_, _ = io.Copy(w, io.LimitReader(f, fi.Size())) // the client has gone
}
