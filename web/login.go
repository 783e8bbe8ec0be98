package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

const sessionCookie = "spinguard_session"

// open are the paths that tell nothing of a request: they need no token, also
// on a private server.
var open = map[string]bool{"/healthz": true, "/login": true, "/style.css": true, "/app.js": true, "/icon.svg": true}

// private lets only those read who have the token: evidence holds what other
// people asked the proxies for.
func (s *Server) private(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.open(r.URL.Path) || s.hasToken(r) || s.hasSession(r) {
			next.ServeHTTP(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/api/") || r.Method != http.MethodGet {
			writeError(w, http.StatusUnauthorized, "reading needs the agent's token, as a bearer, or its unix socket")
			return
		}
		s.loginPage(w, http.StatusUnauthorized, "")
	})
}

// open says whether a path needs no token. Metrics name proxies and upstreams.
func (s *Server) open(path string) bool { return open[path] || path == "/metrics" && !s.o.Exposed }

func (s *Server) hasToken(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && s.o.Token != "" && sameSecret(given, s.o.Token)
}

func (s *Server) hasSession(r *http.Request) bool {
	c, err := r.Cookie(sessionCookie)
	return err == nil && s.o.Token != "" && sameSecret(c.Value, s.session())
}

// session is what the cookie holds: proof of the token, but not the token.
func (s *Server) session() string {
	m := hmac.New(sha256.New, []byte(s.o.Token))
	m.Write([]byte("session of a reader"))
	return hex.EncodeToString(m.Sum(nil))
}

// login takes the token from the form. The cookie is for reading; changes ask
// for the token again.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if s.o.Token == "" || !sameSecret(r.PostFormValue("token"), s.o.Token) {
		s.loginPage(w, http.StatusForbidden, "That is not the token.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: s.session(), Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *Server) loginPage(w http.ResponseWriter, code int, note string) {
	s.render(w, code, "login", note)
}
