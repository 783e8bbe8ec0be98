package web

import (
	"net/http"
	"strings"
	"testing"
)

func TestPrivate(t *testing.T) {
	s, f := server(t)
	s.o.Private = true
	h := s.Handler(false)
	for path, code := range map[string]int{
		"/": 401, "/incidents": 401, "/incidents/" + testID + "/": 401, "/incidents/" + testID + "/incident.json": 401, "/incidents/" + testID + "/pprof/top": 401,
		"/api/workers": 401, "/api/incidents": 401, "/api/incidents/" + testID + "/export": 401, "/events": 401, "/fragments/workers": 401, "/settings": 401,
		"/nowhere": 401, "/metrics": 200, "/healthz": 200, "/style.css": 200,
	} {
		r := ask(t, h, "GET", path, "")
		if body := text(t, r); r.StatusCode != code || code == 401 && strings.Contains(body, "shop") {
			t.Errorf("%s: %d, want %d: %.200s", path, r.StatusCode, code, body)
		}
	}
	if r := ask(t, h, "GET", "/api/workers", "", "Authorization: Bearer s3cret"); r.StatusCode != 200 {
		t.Errorf("with the token: %d", r.StatusCode)
	}
	if r := ask(t, s.Handler(true), "GET", "/api/workers", ""); r.StatusCode != 200 {
		t.Errorf("over the socket: %d", r.StatusCode)
	}
	const form = "Content-Type: application/x-www-form-urlencoded"
	if r := ask(t, h, "POST", "/login", "token=wrong", form); r.StatusCode != 403 || r.Header.Get("Set-Cookie") != "" {
		t.Errorf("wrong token: %d %s", r.StatusCode, r.Header.Get("Set-Cookie"))
	}
	r := ask(t, h, "POST", "/login", "token=s3cret", form)
	if r.StatusCode != 303 || len(r.Cookies()) != 1 {
		t.Fatalf("login: %d %v", r.StatusCode, r.Cookies())
	}
	c := r.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, "s3cret") {
		t.Errorf("cookie: %v", c)
	}
	cookie := "Cookie: " + c.Name + "=" + c.Value
	if r := ask(t, h, "GET", "/", "", cookie); r.StatusCode != 200 {
		t.Errorf("reader: %d", r.StatusCode)
	}
	if r := ask(t, h, "GET", "/", "", cookie+"0"); r.StatusCode != 401 {
		t.Errorf("forged cookie: %d", r.StatusCode)
	}
	// The cookie is for reading only.
	if r := ask(t, h, "DELETE", "/api/quarantines/q1?reason=x", "", cookie); r.StatusCode != 403 || len(f.lifted) != 0 {
		t.Errorf("reader changes: %d %v", r.StatusCode, f.lifted)
	}
	// Without a token nobody can log in, and nobody gets in.
	s.o.Token = ""
	if r := ask(t, h, "POST", "/login", "token=", form); r.StatusCode != 403 {
		t.Errorf("empty token: %d", r.StatusCode)
	}
	if r := ask(t, h, "GET", "/api/workers", "", "Authorization: Bearer "); r.StatusCode != 401 {
		t.Errorf("empty bearer: %d", r.StatusCode)
	}
}
