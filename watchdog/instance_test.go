package watchdog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/proxy"
)

func TestALedgerThatCantBeTrustedIsSaidAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "ledger")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	in := &instance{}
	in.openLedger(link, time.Now(), zap.NewNop())
	if in.ledger != nil || !strings.Contains(in.note, "no quarantine") {
		t.Errorf("ledger %v, note %q", in.ledger, in.note)
	}
}

func TestALedgerOfRandomBytesIsRepaired(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(path, []byte(strings.Repeat("garbage!", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	in := &instance{}
	in.openLedger(path, time.Now(), zap.NewNop())
	defer in.close()
	now := time.Now()
	if got := in.quarantines(now, time.Second, zap.NewNop()); len(got) != 0 || in.note != "" {
		t.Fatalf("quarantines %v, note %q", got, in.note)
	}
	if _, err := in.ledger.Add(balancer.Entry{Kind: balancer.KindVersion, Upstream: "shop", Version: 2, Until: now.Add(time.Minute)}, now); err != nil {
		t.Fatal(err)
	}
	if got := in.quarantines(now, 2*time.Second, zap.NewNop()); len(got) != 1 {
		t.Errorf("quarantines %v, want one", got)
	}
}

func TestRefusedUpstreams(t *testing.T) {
	entries := []balancer.Entry{
		{Kind: balancer.KindVersion, Upstream: "a"}, {Kind: balancer.KindVersion, Upstream: "a", Version: 3},
		{Kind: balancer.KindVersion, Upstream: "b"}, {Kind: balancer.KindPeer, Upstream: "c"},
	}
	if got := refusedUpstreams(entries, "b"); got != 1 {
		t.Errorf("%d upstreams are refused besides b, want 1", got)
	}
}

func TestExempt(t *testing.T) {
	for _, test := range []struct {
		p      proxy.Proxy
		exempt bool
	}{
		{proxy.Proxy{Kind: proxy.Nginx}, false}, {proxy.Proxy{Kind: proxy.Nginx, MasterGone: true}, true},
		{proxy.Proxy{Kind: proxy.HAProxy}, true}, {proxy.Proxy{Kind: proxy.Go}, true},
	} {
		if got := (&instance{Proxy: test.p}).exempt(); (got != "") != test.exempt {
			t.Errorf("%+v: exempt %q", test.p, got)
		}
	}
}
