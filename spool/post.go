package spool

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// ReplyError is an answer that is no success.
type ReplyError struct {
	Final bool // asking again would not help
	Text  string
}

func (e *ReplyError) Error() string { return e.Text }

// Poster sends requests to one receiver.
type Poster struct {
	Authorization string // file with the value of the header, read each time; empty: none
	client        http.Client
}

// NewPoster returns a Poster. Redirects are not followed: a receiver that moved
// must be configured anew, not fed through whoever answers in its place.
func NewPoster(authorizationFile string) *Poster {
	return &Poster{Authorization: authorizationFile, client: http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Post sends a request and says what its answer means for the item.
func (p *Poster) Post(r *http.Request) error {
	_, err := p.Ask(r)
	return err
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 10

// Ask is Post that also returns the answer of a success, cut to 16 KiB.
func (p *Poster) Ask(r *http.Request) ([]byte, error) {
	r.Header.Set("User-Agent", "spinguard")
	if p.Authorization != "" {
		value, err := os.ReadFile(p.Authorization)
		if err != nil {
			return nil, fmt.Errorf("authorization_file: %w", err)
		}
		r.Header.Set("Authorization", strings.TrimSpace(string(value)))
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return nil, bare(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // the status counts
	code := answer.StatusCode
	if code/100 == 2 {
		return text, nil
	}
	again := code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
	return nil, &ReplyError{Final: !again, Text: fmt.Sprintf("answer %s: %.300q", answer.Status, text)}
}
