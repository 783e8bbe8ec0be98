package notify

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// startAlertmanager runs Debian's at an address of its own.
func startAlertmanager(t *testing.T, addr string) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "am.yml")
	if err := os.WriteFile(config, []byte("route: {receiver: none}\nreceivers: [{name: none}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("prometheus-alertmanager", "--config.file="+config, "--storage.path="+dir, "--web.listen-address="+addr, "--cluster.listen-address=")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

type gotAlert struct {
	Labels, Annotations map[string]string
	GeneratorURL        string
	EndsAt              time.Time
}

// firing asks Alertmanager for the alerts that fire; nil: it is not there.
func firing(base string) []gotAlert {
	answer, err := http.Get(base + "/api/v2/alerts?active=true")
	if err != nil {
		return nil
	}
	defer func() { _ = answer.Body.Close() }()
	list := []gotAlert{}
	if json.NewDecoder(answer.Body).Decode(&list) != nil {
		return nil
	}
	return list
}

// until waits for the alerts to be as many.
func until(t *testing.T, base string, n int) []gotAlert {
	t.Helper()
	var list []gotAlert
	for range 400 {
		if list = firing(base); list != nil && len(list) == n {
			return list
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%d alerts fire, not %d: %+v", len(list), n, list)
	return nil
}

// Alertmanager is away when the incident opens, gets its alert later, with the
// refusal a second one, and both end with the incident.
func TestRealAlertmanager(t *testing.T) {
	if _, err := exec.LookPath("prometheus-alertmanager"); err != nil {
		lacks(t, "no prometheus-alertmanager")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	base := "http://" + addr
	n := begin(t, Options{Dir: t.TempDir(), Alertmanager: base + "/", Page: "http://127.0.0.1:9517"})
	inc := sample()
	inc.Began = time.Now().Add(-time.Second)
	n.Tell(Opened, inc, time.Now())
	for n.receivers[0].spool.Counts().Failed == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	startAlertmanager(t, addr)
	a := until(t, base, 1)[0]
	if a.Labels["alertname"] != "SpinguardIncident" || a.Labels["incident"] != inc.ID || a.Labels["node"] != "lb-7" {
		t.Errorf("labels %v", a.Labels)
	}
	if link := "http://127.0.0.1:9517/incidents/" + inc.ID; a.Annotations["link"] != link || a.GeneratorURL != link || a.Annotations["upstream"] != "shop 2" {
		t.Errorf("annotations %v, generator %s", a.Annotations, a.GeneratorURL)
	}
	n.Tell(Refused, inc, time.Now())
	until(t, base, 2)
	// Sent again, an alert fires for longer and is still the same alert.
	n.repeatTo(context.Background(), n.receivers[0])
	if again := until(t, base, 2); !laterEnd(again, a.EndsAt) {
		t.Errorf("not prolonged: %+v, was %s", again, a.EndsAt)
	}
	over := ended(inc)
	*over.Ended = time.Now()
	n.Tell(Ended, over, time.Now())
	until(t, base, 0)
}

func laterEnd(list []gotAlert, than time.Time) bool {
	for _, a := range list {
		if a.Labels["alertname"] == "SpinguardIncident" {
			return a.EndsAt.After(than)
		}
	}
	return false
}

// lacks skips a test for want of something, or fails it where nothing may be
// skipped.
func lacks(t *testing.T, what ...any) {
	t.Helper()
	if os.Getenv("REQUIRE_BPF") == "1" {
		t.Fatal(what...)
	}
	t.Skip(what...)
}
