package web

import (
	"bytes"
	"crypto/rand"
	"embed"
	"errors"
	"html/template"
	"io"
	"net/http"
	"strings"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/web/api"
	"go.uber.org/zap"
	"gopkg.in/yaml.v3"
)

//go:embed assets
var assets embed.FS

var pageTemplates = template.Must(template.New("").Funcs(templateFuncs).ParseFS(assets, "assets/*.tmpl"))

// view is what every page sees.
type view struct {
	Title   string
	Tab     string
	Trusted bool // changes need no token here
	Changes bool // changes are possible at all
	Status  api.Status
	Data    any
}

func (s *Server) pageRoutes(mux *http.ServeMux, trusted bool) {
	pages := map[string]func(*http.Request) (view, error){
		"GET /{$}":         s.overview,
		"GET /incidents":   s.incidentList,
		"GET /quarantines": s.quarantinePage,
		"GET /settings":    s.settingsPage,
		"GET /feed":        s.feedPage,
	}
	for pattern, make := range pages {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := make(r)
			if err != nil {
				s.failPage(w, r, err)
				return
			}
			v.Trusted, v.Changes = trusted, trusted || s.o.Token != ""
			s.render(w, http.StatusOK, v.Tab, v)
		})
	}
	mux.HandleFunc("GET /fragments/workers", func(w http.ResponseWriter, _ *http.Request) {
		s.render(w, http.StatusOK, "workers", s.rows())
	})
	mux.HandleFunc("GET /incidents/latest", s.latest)
	mux.HandleFunc("GET /incidents/{id}/{$}", s.reportPage)
	mux.HandleFunc("GET /incidents/{id}/pprof/{view...}", s.pprofPage)
	mux.HandleFunc("GET /style.css", asset("style.css", "text/css; charset=utf-8"))
	mux.HandleFunc("GET /app.js", asset("app.js", "text/javascript; charset=utf-8"))
	mux.HandleFunc("GET /icon.svg", asset("icon.svg", "image/svg+xml"))
	mux.HandleFunc("GET /favicon.ico", asset("icon.svg", "image/svg+xml")) // what browsers ask for where a page names none
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.failPage(w, r, notFound(r.URL.Path))
	})
}

func asset(name, kind string) http.HandlerFunc {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // embedded: a mistake of the build
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(data) // the client has gone
	}
}

// render executes a template whole before anything is sent.
func (s *Server) render(w http.ResponseWriter, code int, name string, v any) {
	var b bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&b, name, v); err != nil {
		s.o.Log.Error("page template", zap.String("page", name), zap.Error(err))
		writeError(w, http.StatusInternalServerError, "page "+name+" cannot be shown")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // the client has gone
}

func (s *Server) failPage(w http.ResponseWriter, r *http.Request, err error) {
	code := status(err)
	if code == http.StatusInternalServerError {
		s.o.Log.Warn("request failed", zap.String("path", r.URL.Path), zap.Error(err))
	}
	s.render(w, code, "error", view{Title: http.StatusText(code), Tab: "error", Status: shownStatus(s.o.Source.Status()), Data: shown(err.Error())})
}

func (s *Server) overview(*http.Request) (view, error) {
	list, err := s.o.Incidents.List(incident.Filter{Limit: 8})
	if err != nil {
		return view{}, err
	}
	return s.view("Workers", "overview", struct {
		Workers     []workerRow
		Incidents   []incident.Summary
		Quarantines []api.Quarantine
		Feed        []api.Event
	}{s.rows(), list, shownQuarantines(s.quarantines()), newestFirst(s.o.Feed.Recent(), 12)}), nil
}

func (s *Server) incidentList(r *http.Request) (view, error) {
	f, err := filterOf(r)
	if err != nil {
		return view{}, err
	}
	list, err := s.o.Incidents.List(f)
	if err != nil {
		return view{}, err
	}
	return s.view("Incidents", "incidents", struct {
		Filter   incident.Filter
		List     []incident.Summary
		Verdicts []string
		Proxies  []api.Proxy
		Older    string // address of the next page; empty: there is none
		Newest   string // of the first page; empty: this is it
	}{f, list, verdicts, shownStatus(s.o.Source.Status()).Proxies, older(f, list), newest(f)}), nil
}

func (s *Server) quarantinePage(*http.Request) (view, error) {
	return s.view("Quarantines", "quarantines", shownQuarantines(s.quarantines())), nil
}

func (s *Server) settingsPage(*http.Request) (view, error) {
	data, err := yaml.Marshal(s.o.Source.Settings())
	if err != nil {
		return view{}, err
	}
	return s.view("Settings in force", "settings", string(data)), nil
}

func (s *Server) feedPage(*http.Request) (view, error) {
	return s.view("Events", "feed", newestFirst(s.o.Feed.Recent(), feedKept)), nil
}

func (s *Server) view(title, tab string, data any) view {
	return view{Title: title, Tab: tab, Status: shownStatus(s.o.Source.Status()), Data: data}
}

// reportPage shows the report live, with pictures from their own files, so
// that the page itself runs no script.
func (s *Server) reportPage(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	inc, err := s.o.Incidents.Load(id)
	if err != nil {
		s.failPage(w, r, err)
		return
	}
	files, err := s.o.Incidents.Files(id)
	if err != nil {
		s.failPage(w, r, err)
		return
	}
	o := incident.ReportOptions{Back: "/incidents", Nonce: rand.Text(), Files: files}
	o.Links = append(o.Links, incident.Link{Name: "everything as one file", URL: "/api/incidents/" + id + "/export"})
	for _, f := range files {
		switch f.Name {
		case incident.FlameFile:
			o.Flame = s.picture(id, f.Name)
		case incident.DiffFile:
			o.Diff = s.picture(id, f.Name)
		case incident.ProfileFile:
			o.Links = append(o.Links, incident.Link{Name: "open in pprof", URL: "pprof/flamegraph"})
		}
	}
	var b bytes.Buffer
	if err := incident.WriteReport(&b, inc, o); err != nil {
		s.failPage(w, r, err)
		return
	}
	w.Header().Set("Content-Security-Policy", strings.Replace(pagePolicy, "style-src 'self'", "style-src 'nonce-"+o.Nonce+"'", 1))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // the client has gone
}

// picture is the address of a picture, with its beginning, which tells its size.
func (s *Server) picture(id, name string) incident.Picture {
	p := incident.Picture{URL: name}
	f, err := s.o.Incidents.File(id, name)
	if err != nil {
		return p // removed meanwhile: the frame says so
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		p.SVG = head[:n]
	}
	return p
}
