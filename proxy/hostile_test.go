package proxy

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// What a process makes of its own executable, path or configuration must not
// break the agent, which runs as root.
func TestNamesAreValidText(t *testing.T) {
	s := &server{t: t, dir: filepath.Join(t.TempDir(), "\xff\xfe dir"), port: freePort(t), exe: need(t, "nginx")}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	sock := s.dir + "/\xfa.sock"
	conf := "user root; pid '" + s.dir + "/nginx.pid'; error_log stderr; events {} http { access_log off; " +
		"client_body_temp_path '" + s.dir + "/b'; proxy_temp_path '" + s.dir + "/p'; fastcgi_temp_path '" + s.dir + "/f';" +
		"uwsgi_temp_path '" + s.dir + "/u'; scgi_temp_path '" + s.dir + "/s'; server { listen 'unix:" + sock + "'; } }"
	s.write("nginx.conf", conf)
	s.run(s.exe, "-p", s.dir, "-c", s.dir+"/nginx.conf")
	t.Cleanup(s.stop)
	s.pid = s.readPID("nginx.pid")
	p := waitProxy(t, newFinder(t), s.pid, "a worker", started(1))
	for _, text := range append([]string{p.Name, p.ConfPath, p.Prefix}, p.Listen...) {
		if !utf8.ValidString(text) || text == "" {
			t.Errorf("text %q", text)
		}
	}
	if len(p.Listen) != 1 {
		t.Errorf("listen %q", p.Listen)
	}
}

// A copy of nginx whose symbol table lies: one variable is at the end of the
// address space.
func TestLyingSymbolsAreRefused(t *testing.T) {
	text, err := os.ReadFile(need(t, "nginx"))
	if err != nil {
		t.Fatal(err)
	}
	e := judgeExe(bytes.NewReader(text))
	if e.kind != Nginx {
		t.Fatalf("kind %q", e.kind)
	}
	lie(t, text, e.symbols["ngx_exiting"])
	e = judgeExe(bytes.NewReader(text))
	if _, there := e.symbols["ngx_exiting"]; there || e.kind != Nginx {
		t.Errorf("kind %q, ngx_exiting at %#x", e.kind, e.symbols["ngx_exiting"].value)
	}
	path := filepath.Join(t.TempDir(), "nginx")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	waitProxy(t, newFinder(t), startNginx(t, nginxOptions{exe: path}).pid, "two workers", started(2))
}

// lie overwrites the value of a symbol, found by its value and size.
func lie(t *testing.T, image []byte, s elfSymbol) {
	t.Helper()
	var entry [16]byte
	put64(entry[:], s.value)
	put64(entry[8:], s.size)
	at := bytes.Index(image, entry[:])
	if at < 0 {
		t.Fatal("no such symbol")
	}
	put64(image[at:], ^uint64(3))
}

func put64(b []byte, v uint64) {
	for i := range 8 {
		b[i] = byte(v >> (8 * i))
	}
}
