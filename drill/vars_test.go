package drill

import (
	"slices"
	"strings"
	"testing"
)

func TestFilled(t *testing.T) {
	c, err := ParseCase("x", []byte(goodCase))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.filled(newVars("/run/it", "/case/shop", 20000))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct{ got, want string }{
		{got.Healthy.Path, "/shop/20000"},
		{got.Healthy.Headers["X-Port"], "20009"},
		{got.Trigger[0].Body, "[20001]"},
		{got.Expect.Peer, "127.0.0.1:20002"},
		{strings.TrimSpace(got.About), "text with {{.Braces}}"},
	} {
		if p.got != p.want {
			t.Errorf("got %q, want %q", p.got, p.want)
		}
	}
	if c.Healthy.Path != "/shop/{{.Port}}" || c.Trigger[0].Body != "[{{.Port1}}]" || c.Healthy.Headers["X-Port"] != "{{.Port9}}" {
		t.Error("the original was changed; a second run would use the ports of the first")
	}
}

func TestFilledUnknownVariable(t *testing.T) {
	c, err := ParseCase("x", []byte(strings.Replace(goodCase, "{{.Port1}}", "{{.Port10}}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.filled(Vars{}); err == nil || !strings.Contains(err.Error(), "Port10") {
		t.Errorf("error is %v", err)
	}
}

func TestFill(t *testing.T) {
	v := newVars("/r", "/c", 100)
	for _, tt := range []struct{ text, want string }{
		{"plain", "plain"},
		{"{{.Run}} {{.Case}} {{.Port}} {{.Port9}}", "/r /c 100 109"},
		{"{{if .Run}}yes{{end}}", "yes"},
		{"local t = {{1, {{.Port3}}}, 2}", "local t = {{1, 103}, 2}"}, // Lua, no template
	} {
		got, err := v.fill(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("fill(%q) = %q, %v, want %q", tt.text, got, err, tt.want)
		}
	}
}

func TestEnviron(t *testing.T) {
	env := newVars("/r", "/c", 100).environ(7, []int{8, 9})
	for _, want := range []string{"RUN=/r", "CASE=/c", "PORT=100", "PORT1=101", "PORT9=109", "MASTER=7", "WORKERS=8 9"} {
		if !slices.Contains(env, want) {
			t.Errorf("environment lacks %s: %v", want, env)
		}
	}
	if env := newVars("/r", "/c", 100).environ(0, nil); !slices.Contains(env, "MASTER=") {
		t.Errorf("no master yet: %v", env)
	}
}
