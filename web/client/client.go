// Package client talks to a running agent over its unix socket. The commands
// use it; so may other tools.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/web/api"
)

// DefaultSocket is where an agent listens that was not told otherwise.
const DefaultSocket = "/run/spinguard/agent.sock"

// maxAnswer bounds an answer that is read into memory.
const maxAnswer = 64 << 20

// ErrNoAgent says that no agent answers on the socket.
var ErrNoAgent = errors.New("no agent is running")

// Client is a connection to one agent. Goroutines may share it; Close it.
type Client struct {
	socket string
	http   *http.Client
}

// New returns a client for the agent behind a socket; empty: DefaultSocket. It
// does not connect yet.
func New(socket string) *Client {
	if socket == "" {
		socket = DefaultSocket
	}
	var d net.Dialer
	return &Client{socket, &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) },
	}}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// StatusError is an answer of the agent that is not a success.
type StatusError struct {
	Code int
	Text string
}

func (e *StatusError) Error() string { return e.Text }

// Status returns what the agent says of itself.
func (c *Client) Status(ctx context.Context) (s api.Status, err error) {
	err = c.call(ctx, http.MethodGet, "/api/status", nil, &s)
	return s, err
}

// Workers returns all workers, in the order of proxy and index.
func (c *Client) Workers(ctx context.Context) (list []api.WorkerStatus, err error) {
	err = c.call(ctx, http.MethodGet, "/api/workers", nil, &list)
	return list, err
}

// Classes returns the classes of requests, most CPU time first.
func (c *Client) Classes(ctx context.Context) (list []api.Class, err error) {
	err = c.call(ctx, http.MethodGet, "/api/classes", nil, &list)
	return list, err
}

// Signals returns what the host says.
func (c *Client) Signals(ctx context.Context) (s api.Signals, err error) {
	err = c.call(ctx, http.MethodGet, "/api/signals", nil, &s)
	return s, err
}

// Incidents returns the incidents that the filter chooses, newest first.
func (c *Client) Incidents(ctx context.Context, f incident.Filter) (list []incident.Summary, err error) {
	q := url.Values{}
	if f.Verdict != "" {
		q.Set("verdict", f.Verdict)
	}
	if f.Proxy != "" {
		q.Set("proxy", f.Proxy)
	}
	if f.Before != "" {
		q.Set("before", f.Before)
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	err = c.call(ctx, http.MethodGet, "/api/incidents?"+q.Encode(), nil, &list)
	return list, err
}

// Incident returns one incident.
func (c *Client) Incident(ctx context.Context, id string) (*incident.Incident, error) {
	var inc incident.Incident
	if err := c.call(ctx, http.MethodGet, "/api/incidents/"+url.PathEscape(id), nil, &inc); err != nil {
		return nil, err
	}
	return &inc, nil
}

// Export writes the folder of an incident to w as one .tar.gz.
func (c *Client) Export(ctx context.Context, id string, w io.Writer) error {
	r, err := c.do(ctx, http.MethodGet, "/api/incidents/"+url.PathEscape(id)+"/export", nil)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	_, err = io.Copy(w, r.Body)
	return err
}

// Quarantines returns what is in force.
func (c *Client) Quarantines(ctx context.Context) (list []api.Quarantine, err error) {
	err = c.call(ctx, http.MethodGet, "/api/quarantines", nil, &list)
	return list, err
}

// Add makes a quarantine by hand.
func (c *Client) Add(ctx context.Context, q api.QuarantineRequest) (made api.Quarantine, err error) {
	err = c.call(ctx, http.MethodPost, "/api/quarantines", q, &made)
	return made, err
}

// Lift ends a quarantine by hand.
func (c *Client) Lift(ctx context.Context, id, reason string) error {
	return c.call(ctx, http.MethodDelete, "/api/quarantines/"+url.PathEscape(id), api.Lift{Reason: reason}, nil)
}

// call sends in as JSON, if it is not nil, and reads the answer into out.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	r, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("answer of the agent: %s", err)
	}
	return nil
}

// do sends a request and turns everything but a success into an error.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://spinguard"+path, body)
	if err != nil {
		return nil, err
	}
	r, err := c.http.Do(req)
	if err != nil {
		return nil, c.explain(err)
	}
	if r.StatusCode < 300 {
		return r, nil
	}
	defer func() { _ = r.Body.Close() }()
	var e api.Error
	if json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&e) != nil || e.Error == "" {
		e.Error = "the agent answered " + r.Status
	}
	return nil, &StatusError{r.StatusCode, e.Error}
}

// explain gives the remedy where it is known.
func (c *Client) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: nobody answers on %s; start it (systemctl start spinguard) or name its socket", ErrNoAgent, c.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("socket %s: not yours to use; try as root", c.socket)
	}
	return err
}
