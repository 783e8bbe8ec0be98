package spool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var small = Limits{Items: 3, Bytes: 100, Pause: func(int) time.Duration { return 0 }}

func open(t *testing.T, dir string) *Spool {
	t.Helper()
	s, err := Open(dir, small)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *Spool, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if err := s.Put(k, []byte("data of "+k)); err != nil {
			t.Fatal(err)
		}
	}
}

// deliverAll runs the spool until nothing waits.
func deliverAll(s *Spool, deliver Delivery) (got []string, dropped []string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if s.Counts().Waiting == 0 {
		return nil, nil
	}
	s.Run(ctx, func(ctx context.Context, key string, data []byte) error {
		err := deliver(ctx, key, data)
		if err == nil {
			got = append(got, key+"="+string(data))
		}
		if err == nil && s.Counts().Waiting == 1 {
			cancel()
		}
		return err
	}, func(key string, _ error, gone bool) {
		if gone {
			dropped = append(dropped, key)
		}
		if s.Counts().Waiting == 0 {
			cancel()
		}
	})
	return got, dropped
}

func TestOldestFirstAndOverARestart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "b", "a", "b")
	// A crash left half an item.
	if err := os.WriteFile(filepath.Join(dir, "0000000000000009-c.item.part"), []byte("da"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	put(t, s, "c")
	got, _ := deliverAll(s, func(context.Context, string, []byte) error { return nil })
	if want := []string{"b=data of b", "a=data of a", "c=data of c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left on disk: %v", left)
	}
}

func TestBounds(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, "1", "2", "3", "4")
	if err := s.Put("large", make([]byte, 101)); err == nil {
		t.Error("an item over the limit was taken")
	}
	got, _ := deliverAll(s, func(context.Context, string, []byte) error { return nil })
	if want := []string{"2=data of 2", "3=data of 3", "4=data of 4"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := s.Put("half", make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	if err := s.Put("other", make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	if c := s.Counts(); c.Waiting != 1 || c.Dropped != 3 {
		t.Errorf("%+v", c)
	}
}

func TestReceiverAwayThenBack(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, "1", "2")
	tries := 0
	got, dropped := deliverAll(s, func(context.Context, string, []byte) error {
		if tries++; tries <= 100 {
			return errors.New("connection refused")
		}
		return nil
	})
	if len(got) != 2 || len(dropped) != 0 || s.Counts().Failed != 100 {
		t.Errorf("got %q, dropped %q, %+v", got, dropped, s.Counts())
	}
}

func TestWhatIsGivenUp(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, "final", "always", "good")
	got, dropped := deliverAll(s, func(_ context.Context, key string, _ []byte) error {
		switch key {
		case "final":
			return &ReplyError{Final: true, Text: "400"}
		case "always":
			return &ReplyError{Text: "500"}
		}
		return nil
	})
	if !slices.Equal(dropped, []string{"final", "always"}) || len(got) != 1 || s.Counts().Failed != 1+maxReplies {
		t.Errorf("got %q, dropped %q, %+v", got, dropped, s.Counts())
	}
}

// A disk that takes nothing keeps nobody from being told.
func TestDiskRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s := open(t, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Put("1", []byte("x")); err == nil || !strings.Contains(err.Error(), "in memory only") {
		t.Errorf("error %v", err)
	}
	if got, _ := deliverAll(s, func(context.Context, string, []byte) error { return nil }); !slices.Equal(got, []string{"1=x"}) {
		t.Errorf("got %q", got)
	}
}

func TestPost(t *testing.T) {
	var auth string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth = r.Header.Get("Authorization")
		var code int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &code)
		w.Header().Set("Location", "/200")
		w.WriteHeader(code)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("Bearer x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for code, want := range map[int]string{200: "ok", 204: "ok", 302: "final", 400: "final", 404: "final", 408: "again", 429: "again", 500: "again", 503: "again"} {
		r, err := http.NewRequest(http.MethodPost, fmt.Sprintf("%s/%d", server.URL, code), strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		err = NewPoster(file).Post(r)
		var reply *ReplyError
		got := "ok"
		if errors.As(err, &reply) {
			got = map[bool]string{true: "final", false: "again"}[reply.Final]
		}
		if got != want || auth != "Bearer x" {
			t.Errorf("%d: %s (%v), want %s; authorization %q", code, got, err, want, auth)
		}
	}
	r, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1:1/secret", nil)
	if err := NewPoster("").Post(r); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("nobody there: %v; want an error without the URL", err)
	}
}

func TestPauseIsBounded(t *testing.T) {
	if pause(1) != time.Second || pause(3) != 4*time.Second || pause(1000) != 5*time.Minute {
		t.Error(pause(1), pause(3), pause(1000))
	}
}

// What waited in memory because the disk took nothing is on disk, in its old
// order, as soon as the disk takes it, and so survives a restart.
func TestDiskComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s := open(t, dir)
	put(t, s, "1")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // no folder can be made here
		t.Fatal(err)
	}
	if err := s.Put("2", []byte("x")); err == nil {
		t.Fatal("a disk that is gone took an item")
	}
	if c := s.Counts(); c.Waiting != 2 || c.Unsaved != 1 {
		t.Errorf("%+v", c)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	put(t, s, "3")
	if c := s.Counts(); c.Waiting != 3 || c.Unsaved != 0 || c.Queued != 3 {
		t.Errorf("%+v", c)
	}
	got, _ := deliverAll(open(t, dir), func(context.Context, string, []byte) error { return nil })
	if want := []string{"1=data of 1", "2=x", "3=data of 3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// While the disk takes nothing, memory has a bound of its own.
func TestMemoryIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(file, Limits{Items: 100, Bytes: 1000, Memory: 100})
	if err == nil {
		t.Fatal("a file was opened as a folder")
	}
	for i := range 50 {
		_ = s.Put(fmt.Sprint(i), make([]byte, 30))
	}
	if c := s.Counts(); c.Waiting != 3 || c.Unsaved != 3 || c.Bytes != 90 || c.Dropped != 47 {
		t.Errorf("%+v", c)
	}
}
