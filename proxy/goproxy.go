package proxy

import (
	"debug/buildinfo"
	"io"
	"strings"
)

// Main modules of the Go proxies, without their major version.
var goModules = map[string]string{
	"github.com/caddyserver/caddy":  "caddy",
	"github.com/traefik/traefik":    "traefik",
	"github.com/containous/traefik": "traefik",
}

// judgeGo looks for a known proxy in the build information of a Go binary. A
// Caddy with extra modules is built from a main module named "caddy" that
// requires the real one.
func (e *exe) judgeGo(f io.ReaderAt) {
	info, err := buildinfo.Read(f)
	if err != nil {
		return
	}
	if name, ok := goModules[withoutMajor(info.Main.Path)]; ok {
		e.kind, e.product, e.version = Go, name, name+"/"+info.Main.Version
		return
	}
	for _, dep := range info.Deps {
		name, ok := goModules[withoutMajor(dep.Path)]
		if ok && info.Main.Path == name {
			e.kind, e.product, e.version = Go, name, name+"/"+dep.Version
			return
		}
	}
}

func withoutMajor(path string) string {
	i := strings.LastIndex(path, "/v")
	if i < 0 || strings.Trim(path[i+2:], "0123456789") != "" {
		return path
	}
	return path[:i]
}
