package drill

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spinguard/spinguard/web/api"
)

// filesLimit is how many file handles the worker of this night may have.
const filesLimit = 80

var nightFiles = filesNight(nightOf(night{fault: useUpFiles, check: nobodyBlamed, signal: "files"},
	"Idle connections use up the file handles of a worker, so it can't connect to any peer. That is no fault of the peers: "+
		"none goes down, and all serve again as soon as there are handles.", "eject_after = 1,", 50))

// filesNight limits the worker's file handles, and keeps no connections to
// peers, so that each request needs a handle.
func filesNight(real func(*Scenario)) func(*Scenario) {
	return func(sc *Scenario) {
		real(sc)
		// Long enough for the agent to look at the handles twice.
		sc.Case.Prove.WatchMS = 12_000
		options := sc.edit
		sc.edit = func(conf string) string {
			conf = strings.Replace(options(conf), "    keepalive 8;\n", "", 1)
			return fmt.Sprintf("worker_rlimit_nofile %d;\n", filesLimit) + conf
		}
	}
}

// checkingBalancer replaces the library by a balancer that connects to its
// peers ten times a second, and takes out those that it can't connect to.
func checkingBalancer(conf string) string {
	return strings.Replace(trustingRegistry(conf), "spinguard.init_worker()", "trusting.watch()", 1)
}

// useUpFiles holds more connections than the worker has handles. Clients that
// were there before go on asking. Then it lets go, and all must be well.
func useUpFiles(n *nightRun) {
	regulars := n.regulars(4)
	watch := n.l.c.Prove.watch()
	crowd := n.crowd(2 * filesLimit)
	held := time.Now().Add(watch - 3*time.Second)
	n.everyWait(50*time.Millisecond, func() {
		if crowd != nil && time.Now().After(held) {
			closeAll(crowd)
			crowd = nil
			n.served() // from half a second later on each peer must serve
		}
		for _, c := range regulars {
			n.note(c.ask(n.ctx, &Request{Path: "/shop/part", Headers: map[string]string{"X-Client": "regular"}}))
		}
	})
	for _, c := range regulars {
		c.web.CloseIdleConnections()
	}
}

// regular is a client that keeps its connection.
type regular struct {
	web  *http.Client
	base string
}

func (n *nightRun) regulars(count int) []*regular {
	var list []*regular
	for range count {
		c := &regular{base: fmt.Sprintf("http://127.0.0.1:%d", n.l.vars.Port), web: &http.Client{
			Transport: &http.Transport{MaxConnsPerHost: 1, DisableCompression: true}, Timeout: time.Second,
		}}
		// A busy machine may need more than one of its seconds.
		status := c.ask(n.ctx, &n.l.c.Healthy)
		for i := 0; i < 10 && status == 0; i++ {
			status = c.ask(n.ctx, &n.l.c.Healthy)
		}
		if status != http.StatusOK {
			n.fail(fmt.Errorf("a regular client is answered with %d", status))
		}
		list = append(list, c)
	}
	return list
}

// ask returns the status, 0 without an answer.
func (c *regular) ask(ctx context.Context, r *Request) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+r.Path, nil)
	if err != nil {
		return 0
	}
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	resp, err := c.web.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)); err != nil {
		return 0
	}
	return resp.StatusCode
}

// crowd connects and asks nothing.
func (n *nightRun) crowd(count int) []net.Conn {
	var list []net.Conn
	for range count {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", n.l.vars.Port))
		if err != nil {
			n.fail(err)
			break
		}
		list = append(list, conn)
	}
	return list
}

func closeAll(list []net.Conn) {
	for _, c := range list {
		_ = c.Close()
	}
}

func nobodyBlamed(f *nightFacts) []string {
	var broken []string
	if f.statuses[http.StatusInternalServerError] == 0 {
		broken = append(broken, "nginx never lacked a file handle to connect to a peer with")
	}
	if out := f.metric("ejections_total"); out > 0 {
		broken = append(broken, fmt.Sprintf("peers went down %.0f times for the worker's own file handles", out))
	}
	for i, requests := range f.requests {
		if requests == 0 {
			broken = append(broken, fmt.Sprintf("peer %d does not serve since there are handles again", i+1))
		}
	}
	return broken
}

// hostSays asks the agent, if there is one, for the kinds of its signals.
func (l *lab) hostSays(ctx context.Context) map[string]bool {
	if l.daemon == nil {
		return nil
	}
	said := map[string]bool{}
	var s api.Signals
	if err := l.daemon.get(ctx, "/api/signals", &s); err == nil {
		for _, signal := range s.Recent {
			said[signal.Kind] = true
		}
	}
	return said
}
