package doctor

import (
	"strings"
	"testing"

	"github.com/spinguard/spinguard/doctor/haproxyconf"
)

const (
	calmGlobal = "global\n maxconn 1000\n hard-stop-after 60s\n stats socket /run/h.sock mode 660 level admin\n"
	calmBase   = "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n timeout http-request 10s\n option redispatch\n"
	twoServers = "backend shop\n server a 10.0.0.1:80 check\n server b 10.0.0.2:80 check\n"
)

// Each setting of HAProxy that hurts is found with its number, and its repair
// is not.
func TestHAProxySettings(t *testing.T) {
	enough := Limits{OpenFiles: 65536, Somaxconn: 4096, CPUs: 4}
	for _, test := range []struct {
		name, text, want string
		limits           Limits
	}{
		{"calm", calmGlobal + calmBase + "frontend f\n bind :80\n" + twoServers, "", enough},
		{"handles", calmGlobal, "maxconn: 1000 against 2000 file handles (h.cfg line 2)", Limits{OpenFiles: 2000}},
		{"handles suffice", calmGlobal, "", Limits{OpenFiles: 2100}},
		{"maxconn by default", strings.Replace(calmGlobal, "maxconn 1000", "daemon", 1), "maxconn: not set, and 1024 file handles", Limits{OpenFiles: 1024}},
		{"no hard stop", strings.Replace(calmGlobal, "hard-stop-after 60s", "daemon", 1), "hard-stop-after: not set", enough},
		{"no socket", strings.Replace(calmGlobal, "stats socket", "# stats socket", 1), "stats socket: none", enough},
		{"socket of an operator", strings.Replace(calmGlobal, "level admin", "level operator", 1), "stats socket: none with level admin", enough},
		{"one thread", calmGlobal + " nbthread 1\n", "nbthread: 1 on 4 CPUs", enough},
		{"too many threads", calmGlobal + " nbthread 8\n", "nbthread: 8 on 4 CPUs", enough},
		{"threads", calmGlobal + " nbthread 4\n", "", enough},
		{"no redispatch", calmGlobal + calmBase + twoServers + " no option redispatch\n", "option redispatch: not set over 2 servers of backend shop", enough},
		{"one server", calmGlobal + calmBase + "backend shop\n no option redispatch\n server a 10.0.0.1:80\n", "", enough},
		{"no retries", calmGlobal + calmBase + twoServers + " retries 0\n", "retries: 0 over 2 servers", enough},
		{"storm", calmGlobal + calmBase + twoServers + " retries 9\n retry-on all-retryable-errors\n", "retry-on: all-retryable-errors with retries 9", enough},
		{"no client timeout", calmGlobal + strings.Replace(calmBase, "timeout client", "timeout queue", 1) + "frontend f\n bind :80\n", "timeout client: not set in frontend f (h.cfg line 12)", enough},
		{"no server timeout", calmGlobal + strings.Replace(calmBase, "timeout server", "timeout queue", 1) + twoServers, "timeout server: not set in backend shop", enough},
		{"no connect timeout", calmGlobal + strings.Replace(calmBase, "timeout connect", "timeout queue", 1) + twoServers, "timeout connect: not set in backend shop", enough},
		{"slow requests", calmGlobal + strings.Replace(calmBase, "timeout http-request", "timeout queue", 1) + "frontend f\n bind :80\n", "timeout http-request: not set in frontend f", enough},
		{"backlog", calmGlobal + calmBase + "frontend f\n bind :80 backlog 9000\n", "listen backlog: 9000 against net.core.somaxconn=4096", enough},
		{"backlog of a section", calmGlobal + calmBase + "frontend f\n bind :80\n backlog 9000\n", "listen backlog: 9000 against", enough},
		{"unchecked", calmGlobal + calmBase + strings.Replace(twoServers, ":80 check", ":80", 1), "check: 1 of 2 servers of backend shop are not checked", enough},
		{"checked by default", calmGlobal + calmBase + strings.ReplaceAll(twoServers, " check", "") + " default-server check\n", "", enough},
	} {
		sections, err := haproxyconf.Parse(haproxyconf.File{Name: "h.cfg", Text: []byte(test.text)})
		if err != nil {
			t.Fatal(err)
		}
		found := CheckHAProxy("h", sections, test.limits)
		if test.want == "" {
			if len(found) > 0 {
				t.Errorf("%s: %+v, want nothing", test.name, found)
			}
			continue
		}
		if len(found) != 1 || !strings.Contains(found[0].Check+": "+found[0].Found, test.want) || found[0].Why == "" || found[0].Remedy == "" {
			t.Errorf("%s: %+v, want one with %q, why and remedy", test.name, found, test.want)
		}
	}
}
