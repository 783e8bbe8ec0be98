package notify

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/spinguard/spinguard/incident"
)

var began = time.Date(2026, 11, 30, 1, 57, 49, 0, time.UTC)

func sample() *incident.Incident {
	return &incident.Incident{
		ID: "20261130T015749.000Z-a1b2c3", Origin: "lb-7", Proxy: "nginx-main", Kind: "nginx", Mode: "enforce", Verdict: "runaway",
		Reason: "400ms of CPU without progress", Began: began, WorkersStuck: 2,
		Evidence: incident.Evidence{Request: "GET /shop/cart", Upstream: "shop", Version: "2", Frames: []string{"gcd (wrr.lua:12)"}},
	}
}

func ended(inc *incident.Incident) *incident.Incident {
	c, at := *inc, began.Add(time.Second)
	c.Ended, c.Outcome = &at, incident.Recovered
	return &c
}

// hook is a webhook that may be away.
type hook struct {
	mu     sync.Mutex
	away   bool
	tried  chan struct{}
	events chan Event
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	away := h.away
	h.mu.Unlock()
	if away {
		select {
		case h.tried <- struct{}{}:
		default:
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var e Event
	if err := json.Unmarshal(body, &e); err != nil || r.Header.Get("Idempotency-Key") != e.Key || r.Method != http.MethodPost {
		http.Error(w, "not an event", http.StatusBadRequest)
		return
	}
	h.events <- e
}

func (h *hook) next(t *testing.T) Event {
	t.Helper()
	select {
	case e := <-h.events:
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no event came")
		return Event{}
	}
}

func begin(t *testing.T, o Options) *Notifier {
	t.Helper()
	o.Log, o.Pause = zap.NewNop(), func(int) time.Duration { return 5 * time.Millisecond }
	n := New(o)
	t.Cleanup(n.Close)
	return n
}

func TestWebhookGetsEachEventOnceInOrder(t *testing.T) {
	h := &hook{tried: make(chan struct{}, 1), events: make(chan Event, 10)}
	server := httptest.NewServer(h)
	defer server.Close()
	n := begin(t, Options{Dir: t.TempDir(), Webhook: server.URL + "/x?token=1", Page: "https://lb-7.example/"})
	inc := sample()
	n.Tell(Opened, inc, began)
	first := h.next(t)
	for n.receivers[0].spool.Counts().Delivered == 0 { // not told again because it waits
		time.Sleep(time.Millisecond)
	}
	n.Tell(Opened, inc, began)
	n.Tell(Refused, inc, began)
	n.Tell(Ended, ended(inc), began)
	second, third := h.next(t), h.next(t)
	if first.Kind != Opened || first.Link != "https://lb-7.example/incidents/"+inc.ID || !strings.Contains(first.Story, "gcd") || first.Request != "GET /shop/cart" {
		t.Errorf("opened: %+v", first)
	}
	if second.Kind != Refused || third.Kind != Ended || third.Outcome != incident.Recovered || !third.WasRefused {
		t.Errorf("then %+v and %+v", second, third)
	}
	if len(h.events) > 0 {
		t.Errorf("more came: %+v", <-h.events)
	}
}

// A receiver that is away is told later, also by the next agent.
func TestReceiverAwayOverARestart(t *testing.T) {
	h := &hook{away: true, tried: make(chan struct{}, 1), events: make(chan Event, 10)}
	server := httptest.NewServer(h)
	defer server.Close()
	o := Options{Dir: t.TempDir(), Webhook: server.URL, Page: "http://127.0.0.1:9517"}
	n := begin(t, o)
	n.Tell(Opened, sample(), began)
	<-h.tried
	n.Tell(Ended, ended(sample()), began)
	n.Close()
	h.mu.Lock()
	h.away = false
	h.mu.Unlock()
	begin(t, o)
	if a, b := h.next(t), h.next(t); a.Kind != Opened || b.Kind != Ended {
		t.Errorf("%s, then %s", a.Kind, b.Kind)
	}
}

// A disk that can't be written keeps nobody from being told.
func TestNoDisk(t *testing.T) {
	h := &hook{tried: make(chan struct{}, 1), events: make(chan Event, 10)}
	server := httptest.NewServer(h)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n := begin(t, Options{Dir: file, Webhook: server.URL})
	n.Tell(Opened, sample(), began)
	if e := h.next(t); e.Kind != Opened {
		t.Errorf("%+v", e)
	}
}

func TestHostileTextsAreBounded(t *testing.T) {
	inc := sample()
	inc.Proxy, inc.Reason = strings.Repeat("\xff<script>", 200_000), "\x00\x1b[31m"
	inc.Evidence.Request, inc.Evidence.Upstream = strings.Repeat("é", 1<<20), strings.Repeat("x", 1<<20)
	data, err := json.Marshal(newEvent(Opened, inc, began, ""))
	if err != nil || len(data) > 64<<10 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestNobodyToTell(t *testing.T) {
	n := New(Options{Dir: "/nonexistent"})
	if n != nil {
		t.Fatal(n)
	}
	n.Tell(Opened, sample(), began)
	n.Close()
}

func TestAlertsOfAnEvent(t *testing.T) {
	now := began.Add(time.Hour)
	list := alerts(newEvent(Opened, sample(), began, "http://p"), now)
	if len(list) != 1 || list[0].EndsAt != now.Add(lives) || list[0].StartsAt != began || list[0].Labels["alertname"] != "SpinguardIncident" {
		t.Errorf("opened: %+v", list)
	}
	e := newEvent(Ended, ended(sample()), began, "http://p")
	e.WasRefused = true
	list = alerts(e, now)
	if len(list) != 2 || list[1].EndsAt != began.Add(time.Second) || list[1].Labels["alertname"] != "SpinguardActionRefused" {
		t.Errorf("ended: %+v", list)
	}
	back := began.Add(-time.Hour)
	e.Ended = &back
	if list = alerts(e, now); list[0].EndsAt.Before(list[0].StartsAt) {
		t.Errorf("ends before it starts: %+v", list[0])
	}
}
