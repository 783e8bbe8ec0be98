package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/spinguard/spinguard/bpf"
)

// TestCaptureTellsTheRequest captures a stuck worker: each sample tells its
// request, without what its query holds, and the program comes first.
func TestCaptureTellsTheRequest(t *testing.T) {
	if s, err := bpf.Open(49); err != nil {
		if os.Getenv("REQUIRE_BPF") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	} else {
		_ = s.Close()
	}
	address, master := startNginx(t)
	quick := http.Client{Timeout: 300 * time.Millisecond}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if r, err := quick.Get("http://" + address + "/"); err == nil {
			_ = r.Body.Close()
			break
		}
	}
	_, _ = quick.Get("http://" + address + "/loop?token=s3cr3t") // never answered
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", master))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "worker.pb.gz")
	for end := time.Now().Add(time.Minute); ; {
		if _, stderr, code := call(t, "capture", "--pid", strings.TrimSpace(string(children)), "--seconds", "0.5", "-o", file); code != 0 {
			t.Fatal(stderr)
		}
		p, requests := captured(t, file)
		if len(requests) == 1 && requests["GET /loop?*** HTTP/1.1"] > 5 {
			if base := filepath.Base(p.Mapping[0].File); base != "nginx" {
				t.Errorf("the first mapping is that of %s", base)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("samples by request: %v", requests)
		}
	}
}

// captured reads a profile, and counts its samples by request.
func captured(t *testing.T, file string) (*profile.Profile, map[string]int64) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]int64{}
	for _, s := range p.Sample {
		requests[strings.Join(s.Label["request"], " ")] += s.Value[0]
	}
	return p, requests
}
