package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const haproxyConf = `
global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend web
  bind %[1]s
  http-request return status 200 content-type text/plain string "some text" if { path /text }
  default_backend self
backend self
  http-request set-path /text
  server self %[1]s
`

// caddyVersion is the version of Caddy's module that is built and measured.
const caddyVersion = "v2.10.2"

const caddyMain = `package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

func main() { caddycmd.Main() }
`

const caddyConf = `{"admin": {"disabled": true}, "logging": {"logs": {"default": {"level": "ERROR"}}}, "apps": {"http": {"servers": {"web": {
  "listen": [%[1]q], "automatic_https": {"disable": true}, "routes": [
    {"match": [{"path": ["/text"]}], "handle": [{"handler": "static_response", "body": "some text"}]},
    {"handle": [{"handler": "rewrite", "uri": "/text"}, {"handler": "reverse_proxy", "upstreams": [{"dial": %[1]q}]}]}]}}}}}
`

func haproxyCase(ctx context.Context, o options, t *table, tools []capturer) error {
	if _, err := exec.LookPath("haproxy"); err != nil {
		fmt.Println("not measured: haproxy is not installed")
		return nil
	}
	return otherCase(ctx, o, t, tools, "HAProxy load", haproxyConf, func(conf string) *exec.Cmd { return exec.Command("haproxy", "-db", "-f", conf) })
}

// caddyCase measures a Caddy that is built from its module once.
func caddyCase(ctx context.Context, o options, t *table, tools []capturer) error {
	program, err := buildCaddy(ctx)
	if err != nil {
		fmt.Printf("not measured: Caddy can't be built here: %v\n", err)
		return nil
	}
	return otherCase(ctx, o, t, tools, "Caddy load", caddyConf, func(conf string) *exec.Cmd {
		cmd := exec.Command(program, "run", "--config", conf)
		cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(conf), "XDG_DATA_HOME="+filepath.Dir(conf), "XDG_CONFIG_HOME="+filepath.Dir(conf))
		return cmd
	})
}

// otherCase starts a proxy that proxies to itself, and measures it under load.
func otherCase(ctx context.Context, o options, t *table, tools []capturer, name, conf string, command func(string) *exec.Cmd) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "spinguard-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	address, path := fmt.Sprint("127.0.0.1:", port), filepath.Join(dir, "proxy.json")
	if err := os.WriteFile(path, fmt.Appendf(nil, conf, address), 0o600); err != nil {
		return err
	}
	cmd := command(path)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := answers(address); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	loaded, stop := context.WithCancel(ctx)
	defer stop()
	load(loaded, "http://"+address+"/proxy", 4)
	time.Sleep(500 * time.Millisecond)
	return captureAll(ctx, o, t, tools, name, cmd.Process.Pid)
}

func answers(address string) error {
	for range 250 {
		if c, err := net.Dial("tcp", address); err == nil {
			return c.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("it does not answer")
}

// buildCaddy builds Caddy in the user's cache, unless it is there already.
func buildCaddy(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "spinguard-bench", "caddy-"+caddyVersion)
	program := filepath.Join(dir, "caddy")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	err = errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "main.go"), []byte(caddyMain), 0o644),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module caddyhost\n\ngo 1.25\n"), 0o644))
	if err != nil {
		return "", err
	}
	for _, args := range [][]string{{"get", "github.com/caddyserver/caddy/v2@" + caddyVersion}, {"build", "-mod=mod", "-o", "caddy", "."}} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %.200s", err, out)
		}
	}
	return program, nil
}
