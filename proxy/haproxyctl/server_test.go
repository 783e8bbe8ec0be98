package haproxyctl

import (
	"reflect"
	"strings"
	"testing"
)

const state = `1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight
3 carts 1 first 127.0.0.1 2 0 1 1
3 carts 2 second 127.0.0.2 0 1 1 1
`

func TestParsesServersState(t *testing.T) {
	got, err := ParseServers(strings.NewReader(state))
	want := []Server{
		{Backend: "carts", Name: "first", Addr: "127.0.0.1", Oper: 2, Weight: 1, Initial: 1},
		{Backend: "carts", Name: "second", Addr: "127.0.0.2", Admin: 1, Weight: 1, Initial: 1},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got[0].Maintenance() || !got[1].Maintenance() {
		t.Error("maintenance is told wrongly")
	}
}

func TestBadServersState(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "no line names its columns",
		"Can't find backend.\n": "of an unknown form",
		strings.Replace(state, " 2 0 1 1", "", 1): "cut",
	} {
		if _, err := ParseServers(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestNamesThatWouldBeCommands(t *testing.T) {
	var c Conn // nothing is sent, so it needs no connection
	for _, name := range []string{"", "a b", "a;shutdown", "a\nshutdown", "a/b", strings.Repeat("a", 300)} {
		if err := c.SetState("carts", name, "maint"); err == nil || !strings.Contains(err.Error(), "not a name") {
			t.Errorf("server %.20q: %v", name, err)
		}
	}
}

func FuzzParseServers(f *testing.F) {
	f.Add(state)
	f.Add("1\n# a b\nx y")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseServers(strings.NewReader(text))
		for _, s := range list {
			if err == nil && (s.Name == "" || s.Backend == "") {
				t.Errorf("%+v has no name", s)
			}
		}
	})
}
