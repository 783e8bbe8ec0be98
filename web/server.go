// Package web serves the agent's HTTP API, its pages and its metrics on a unix
// socket and, if wanted, on a loopback address. It shows what a Source tells
// and what lies in the incident folders; it decides nothing.
//
// Reading is free on both, unless the server is private. Changing something
// needs the unix socket, whose file mode says who may, or the token. On any
// other address it is served over TLS only, to who has the token or a
// certificate.
package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// Options says what a Server serves. Source and Incidents are required.
type Options struct {
	Source    Source
	Incidents Incidents
	Metrics   *Metrics // nil: no /metrics
	Feed      *Feed    // nil: an empty feed
	Token     string   // for changes over TCP; empty: none are possible there
	Private   bool     // reading over TCP needs the token too, but for metrics
	Exposed   bool     // and for metrics: other hosts can reach it
	Hosts     []string // further Host names under which the page is reached
	// Certificates are those of a TLS listener among the served; nil: there is none.
	Certificates *Certificates
	Log          *zap.Logger
	Now          func() time.Time
}

// Server answers HTTP requests. Make it with New.
type Server struct {
	o       Options
	history *history
	pprof   *pprofPages
}

// New returns a server; it starts nothing.
func New(o Options) *Server {
	if o.Feed == nil {
		o.Feed = &Feed{}
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Server{o: o, history: newHistory(), pprof: newPprofPages(o.Incidents)}
}

// Serve answers on the listeners until ctx is done, then gives open requests
// two seconds. It closes the listeners. A unix listener is trusted with
// changes.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.record(ctx)
	errs := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { errs <- s.serveOne(ctx, l) }()
	}
	var all error
	for range listeners {
		if err := <-errs; err != nil {
			all = errors.Join(all, err)
			cancel()
		}
	}
	return all
}

func (s *Server) serveOne(ctx context.Context, l net.Listener) error {
	_, trusted := l.Addr().(*net.UnixAddr)
	srv := &http.Server{
		Handler:           s.Handler(trusted),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          zap.NewStdLog(s.o.Log),
		// A feed that is open must end with the agent.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			_ = srv.Close() // those who did not finish in time
		}
	})
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// record keeps the last minutes of every worker for the spark lines.
func (s *Server) record(ctx context.Context) {
	tick := time.NewTicker(historyEvery)
	defer tick.Stop()
	for {
		s.history.add(s.o.Source.Glance())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
