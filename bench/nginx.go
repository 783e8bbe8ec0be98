package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed bench.lua
var benchLua []byte

const nginxConf = `
load_module %[1]s/ndk_http_module.so;
load_module %[1]s/ngx_http_lua_module.so;
user root; daemon off; worker_processes %[2]d; pid %[3]s/nginx.pid; error_log %[3]s/error.log warn;
events { worker_connections 1024; }
http {
  access_log off; lua_package_path "%[3]s/?.lua;;"; client_body_temp_path %[3]s/body;
  proxy_temp_path %[3]s/proxy; fastcgi_temp_path %[3]s/fastcgi; uwsgi_temp_path %[3]s/uwsgi; scgi_temp_path %[3]s/scgi;
  keepalive_requests 1000000;
  init_by_lua_block { compiled = require "bench"; package.loaded.bench = nil; interpreted = require("bench").interpreted() }
  upstream self { server 127.0.0.1:%[4]d; keepalive 16; }
  server {
    listen 127.0.0.1:%[4]d backlog=1024;
    location = /text { return 200 "some text\n"; }
    location = /proxy { proxy_pass http://self/text; proxy_http_version 1.1; proxy_set_header Connection ""; }
    location = /compiled/stuck { content_by_lua_block { compiled.stuck() } }
    location = /interpreted/stuck { content_by_lua_block { interpreted.stuck() } }
    location = /compiled/render { content_by_lua_block { ngx.say(compiled.render()) } }
    location = /interpreted/render { content_by_lua_block { ngx.say(interpreted.render()) } }
  }
}
`

var moduleDirs = []string{"/usr/lib/nginx/modules", "/usr/lib64/nginx/modules", "/usr/share/nginx/modules"}

// nginx is a private nginx.
type nginx struct {
	cmd     *exec.Cmd
	address string
	workers []int
	dir     string
}

// startNginx starts an nginx of so many workers. Close it.
func startNginx(workers int) (*nginx, error) {
	modules := ""
	for _, dir := range moduleDirs {
		if _, err := os.Stat(filepath.Join(dir, "ngx_http_lua_module.so")); err == nil {
			modules = dir
		}
	}
	if modules == "" {
		return nil, errors.New("nginx with its Lua module is not installed")
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "spinguard-bench-")
	if err != nil {
		return nil, err
	}
	n := &nginx{address: "127.0.0.1:" + strconv.Itoa(port), dir: dir}
	conf := fmt.Sprintf(nginxConf, modules, workers, dir, port)
	err = errors.Join(os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o644), os.WriteFile(filepath.Join(dir, "bench.lua"), benchLua, 0o644))
	if err != nil {
		n.close()
		return nil, err
	}
	n.cmd = exec.Command("nginx", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	n.cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := n.cmd.Start(); err != nil {
		n.cmd = nil
		n.close()
		return nil, err
	}
	if err := n.wait(workers); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (n *nginx) wait(workers int) error {
	for range 250 {
		if c, err := net.Dial("tcp", n.address); err == nil {
			_ = c.Close()
			if n.workers = children(n.cmd.Process.Pid); len(n.workers) == workers {
				return nil
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	text, _ := os.ReadFile(filepath.Join(n.dir, "error.log"))
	return fmt.Errorf("nginx does not answer: %s", text)
}

func (n *nginx) close() {
	if n.cmd != nil {
		workers := children(n.cmd.Process.Pid)
		_ = n.cmd.Process.Kill() // first, or it starts new workers
		for _, pid := range workers {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_ = n.cmd.Wait()
	}
	_ = os.RemoveAll(n.dir)
}

// load asks for a page over so many connections until the context ends.
func load(ctx context.Context, url string, connections int) {
	for range connections {
		go func() {
			client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
			for ctx.Err() == nil {
				if r, err := client.Get(url); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					_ = r.Body.Close()
				}
			}
		}()
	}
}

// ask asks for a page once in a while until the context ends.
func ask(ctx context.Context, url string, every time.Duration) {
	client := &http.Client{Timeout: 30 * time.Second}
	for ctx.Err() == nil {
		if r, err := client.Get(url); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
		pause(ctx, every)
	}
}

func children(pid int) []int {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var out []int
	for f := range strings.FieldsSeq(string(data)) {
		if n, err := strconv.Atoi(f); err == nil {
			out = append(out, n)
		}
	}
	return out
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
