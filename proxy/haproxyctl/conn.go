// Package haproxyctl speaks with the runtime API of HAProxy: it reads the state
// of servers and takes one out of its backend, or back in. It changes nothing
// else.
package haproxyctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Bounds of what is read and how long is waited.
const (
	maxAnswer   = 4 << 20
	attempts    = 6
	attemptEach = 60 * time.Millisecond
	within      = time.Second
)

// Conn is one session with the runtime API. It belongs to one goroutine; who
// dialed closes it.
type Conn struct {
	c net.Conn
	r *bufio.Reader
}

// Dial opens a session with the socket at address, "unix:/path" or "host:port".
//
// HAProxy may hand a new connection to the very thread that is stuck, where it
// would wait for ever, and its commands would be carried out much later. So
// several connections are tried, and the first that shows a prompt is used: a
// command is only ever sent to a thread that turns.
func Dial(ctx context.Context, address string) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	type outcome struct {
		c   *Conn
		err error
	}
	results := make(chan outcome, attempts)
	for i := range attempts {
		go func() {
			c, err := dialAfter(ctx, time.Duration(i)*attemptEach, address)
			results <- outcome{c, err}
		}()
	}
	var first *Conn
	var failure error
	for range attempts {
		o := <-results
		switch {
		case o.err == nil && first == nil:
			first = o.c
			cancel() // the others are not needed
		case o.err == nil:
			_ = o.c.Close()
		case failure == nil:
			failure = o.err
		}
	}
	if first == nil {
		return nil, failure
	}
	return first, nil
}

func dialAfter(ctx context.Context, pause time.Duration, address string) (*Conn, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(pause):
	}
	nc, err := connect(ctx, address)
	if err != nil {
		return nil, err
	}
	c := &Conn{c: nc, r: bufio.NewReader(nc)}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	_, err = c.send("prompt")
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = nc.Close()
		if ctx.Err() != nil {
			err = errors.New("runtime API: no thread answers")
		}
		return nil, err
	}
	return c, nil
}

// Close ends the session.
func (c *Conn) Close() error { return c.c.Close() }

// command sends one line and returns its answer without the prompt.
func (c *Conn) command(line string) (string, error) {
	if err := c.c.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	return c.send(line)
}

func (c *Conn) send(line string) (string, error) {
	if _, err := io.WriteString(c.c, line+"\n"); err != nil {
		return "", fmt.Errorf("runtime API: %w", err)
	}
	var answer strings.Builder
	for {
		part, err := c.r.ReadString(' ')
		answer.WriteString(part)
		if err != nil {
			return "", fmt.Errorf("runtime API: answer to %q: %w", line, err)
		}
		if text := answer.String(); text == "> " || strings.HasSuffix(part, "\n> ") || part == "> " && strings.HasSuffix(text, "\n> ") {
			return strings.TrimSpace(strings.TrimSuffix(text, "> ")), nil
		}
		if answer.Len() > maxAnswer {
			return "", fmt.Errorf("runtime API: answer to %q: over %d bytes", line, maxAnswer)
		}
	}
}
