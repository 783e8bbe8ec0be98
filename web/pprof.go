package web

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
	"github.com/spinguard/spinguard/incident"
)

// pprofViews are the views of pprof's web page that are mounted. Its source
// and disassembly views open files that a profile names, which a worker of
// ill will could choose, and its graph runs another program: they are left out.
var pprofViews = map[string]bool{"/": true, "/flamegraph": true, "/top": true, "/peek": true, "/download": true}

const (
	pprofKept    = 4        // pages kept at once; each holds its profile in memory
	maxProfile   = 64 << 20 // bytes of a profile, unpacked
	pprofPolicy  = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"
	pprofTimeout = time.Minute
)

// pprofPages makes pprof's web page for profiles of incidents, on demand.
type pprofPages struct {
	incidents Incidents

	mu    sync.Mutex // also serializes pprof, which has global state
	pages []pprofPage
}

type pprofPage struct {
	key      string
	handlers map[string]http.Handler
}

func newPprofPages(i Incidents) *pprofPages { return &pprofPages{incidents: i} }

// get returns the handlers for one profile. A profile that was replaced is read
// again.
func (p *pprofPages) get(id, name string) (map[string]http.Handler, error) {
	f, err := p.incidents.File(id, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(id, "/", name, fi.ModTime().UnixNano(), fi.Size())
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, page := range p.pages {
		if page.key == key {
			return page.handlers, nil
		}
	}
	handlers, err := buildPprof(f)
	if err != nil {
		return nil, fmt.Errorf("pprof page of %s/%s: %s", id, name, err)
	}
	p.pages = append([]pprofPage{{key, handlers}}, p.pages[:min(len(p.pages), pprofKept-1)]...)
	return handlers, nil
}

func buildPprof(r io.Reader) (map[string]http.Handler, error) {
	data, err := unpack(r)
	if err != nil {
		return nil, err
	}
	prof, err := profile.ParseUncompressed(data)
	if err != nil {
		return nil, err
	}
	var handlers map[string]http.Handler
	err = driver.PProf(&driver.Options{
		Flagset: &pprofFlags{FlagSet: flag.NewFlagSet("pprof", flag.ContinueOnError)},
		Fetch:   fixedProfile{prof}, Sym: noSymbols{}, Obj: noObjects{}, UI: silent{},
		HTTPServer: func(a *driver.HTTPServerArgs) error {
			handlers = a.Handlers
			return nil
		},
	})
	if err == nil && handlers == nil {
		err = errors.New("no page was made")
	}
	return handlers, err
}

// pprofPage serves GET /incidents/{id}/pprof/{view...}.
func (s *Server) pprofPage(w http.ResponseWriter, r *http.Request) {
	view := "/" + r.PathValue("view")
	if !pprofViews[view] {
		writeError(w, http.StatusNotFound, "pprof's view "+quoted(view)+" is not offered here")
		return
	}
	handlers, err := s.pprof.get(r.PathValue("id"), incident.ProfileFile)
	if err != nil {
		s.failPage(w, r, err)
		return
	}
	w.Header().Set("Content-Security-Policy", pprofPolicy)
	http.TimeoutHandler(handlers[view], pprofTimeout, "pprof took too long").ServeHTTP(w, r)
}

// fixedProfile gives pprof the profile that was read already.
type fixedProfile struct{ p *profile.Profile }

func (f fixedProfile) Fetch(string, time.Duration, time.Duration) (*profile.Profile, string, error) {
	return f.p, "", nil
}

// noSymbols and noObjects keep pprof away from files and other programs: the
// profile has its names already.
type noSymbols struct{}

func (noSymbols) Symbolize(string, driver.MappingSources, *profile.Profile) error { return nil }

type noObjects struct{}

var errNoObjects = errors.New("object files are not read here")

func (noObjects) Open(string, uint64, uint64, uint64, string) (driver.ObjFile, error) {
	return nil, errNoObjects
}

func (noObjects) Disasm(string, uint64, uint64, bool) ([]driver.Inst, error) {
	return nil, errNoObjects
}

// silent is a user interface without a user.
type silent struct{}

func (silent) ReadLine(string) (string, error)     { return "", io.EOF }
func (silent) Print(...any)                        {}
func (silent) PrintErr(...any)                     {}
func (silent) IsTerminal() bool                    { return false }
func (silent) WantBrowser() bool                   { return false }
func (silent) SetAutoComplete(func(string) string) {}

// pprofFlags gives pprof a fixed command line.
type pprofFlags struct{ *flag.FlagSet }

func (f *pprofFlags) StringList(name, def, usage string) *[]*string {
	return &[]*string{f.String(name, def, usage)}
}
func (f *pprofFlags) ExtraUsage() string   { return "" }
func (f *pprofFlags) AddExtraUsage(string) {}
func (f *pprofFlags) Parse(func()) []string {
	if f.FlagSet.Parse(strings.Fields("-http=localhost:1 -no_browser profile")) != nil {
		return nil
	}
	return f.Args()
}
