package drill

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// backend answers every request, whatever happens to the proxy.
type backend struct{ servers []*http.Server }

// startBackends listens on Port1 and Port2.
func (l *lab) startBackends() error {
	l.back = &backend{}
	for _, port := range []int{l.vars.Port1, l.vars.Port2} {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return fmt.Errorf("backend: %w", err)
		}
		srv := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 10 * time.Second}
		l.back.servers = append(l.back.servers, srv)
		go func() { _ = srv.Serve(ln) }()
	}
	return nil
}

func answer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, "here you are\n")
}

func (b *backend) stop() {
	for _, s := range b.servers {
		_ = s.Close()
	}
}
