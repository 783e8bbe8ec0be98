package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/web/api"
)

func TestPrintsClasses(t *testing.T) {
	list := make([]api.Class, 30)
	list[0] = api.Class{Proxy: "nginx-main", Upstream: "shop", Route: "GET /shop/\x1b[31m*", Phase: "access", CPUSeconds: 1.25, OverBudget: 2}
	var out bytes.Buffer
	printClasses(env{}, &out, list, 60)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1+classesShown || !strings.HasPrefix(lines[1], "1.2 s") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%d lines: %q", len(lines), lines[:2])
	}
	for _, line := range lines {
		if len([]rune(line)) > 60 {
			t.Errorf("%q is too wide", line)
		}
	}
	out.Reset()
	if printClasses(env{}, &out, nil, 0); out.Len() != 0 {
		t.Error("a table of nothing")
	}
}
