package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
)

// pagePolicy is the content security policy of our own pages: nothing from
// elsewhere, no inline script, no inline style.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"

// filePolicy is that of stored evidence. It may run its own script, for the
// flame graph, but in an origin of its own that can reach nothing.
const filePolicy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; frame-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts allow-popups"

// guard refuses requests under a foreign Host (DNS rebinding) and sets the
// headers that hold for everything.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !s.knownHost(r.Host) {
			writeError(w, http.StatusMisdirectedRequest, "host "+quoted(r.Host)+" is not known here: use 127.0.0.1 or localhost")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		next.ServeHTTP(w, r)
	})
}

func (s *Server) knownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" || name == "spinguard" || slices.Contains(s.o.Hosts, name) {
		return true
	}
	if s.o.Certificates != nil && s.o.Certificates.Knows(name) {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// mayChange says whether a request may change something: it came through the
// unix socket, or carries the token, or, where there is none, a certificate.
// Foreign pages are refused before this.
func (s *Server) mayChange(r *http.Request, trusted bool) bool {
	if trusted || s.hasToken(r) || s.o.Token == "" && hasCertificate(r) {
		return true
	}
	return r.Method == http.MethodPost && s.o.Token != "" && sameSecret(r.PostFormValue("token"), s.o.Token)
}

// sameSecret compares in a time that depends on neither text nor length.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
