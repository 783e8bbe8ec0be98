package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spinguard/spinguard/watchdog/config"
)

// selfSigned writes a certificate with its key below dir.
func selfSigned(t *testing.T, dir string, serial int64) config.TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	asDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	files := config.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for name, block := range map[string]*pem.Block{files.Cert: {Type: "CERTIFICATE", Bytes: der}, files.Key: {Type: "EC PRIVATE KEY", Bytes: asDER}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Where other hosts could read, the agent does not start without asking them
// for something.
func TestListenElsewhereIsRefusedWithoutTokenOrMTLS(t *testing.T) {
	dir, err := os.MkdirTemp("", "sg") // short: a socket's path has a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	files := selfSigned(t, dir, 1)
	withCA := files
	withCA.ClientCA = files.Cert
	for _, test := range []struct {
		name, listen, token, want string
		tls                       config.TLS
	}{
		{"nothing", "0.0.0.0:0", "", "SPINGUARD_TOKEN", files},
		{"token", "0.0.0.0:0", "secret", "", files},
		{"mTLS", "0.0.0.0:0", "", "", withCA},
		{"token in the clear", "0.0.0.0:0", "secret", "not a loopback address", config.TLS{}},
		{"loopback with TLS", "127.0.0.1:0", "", "", files},
		{"loopback", "127.0.0.1:0", "", "", config.TLS{}},
		{"no such file", "127.0.0.1:0", "", "no such file", config.TLS{Cert: "/none", Key: "/none"}},
	} {
		list, _, err := listen(config.Config{RunDir: dir, Listen: test.listen, TLS: test.tls}, test.token)
		for _, l := range list {
			_ = l.Close()
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// A certificate that was renewed is in force after a SIGHUP.
func TestCertificateOnHangup(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, dir := l.Addr().String(), t.TempDir()
	_ = l.Close()
	files := selfSigned(t, dir, 7)
	a := startAgent(t, fmt.Sprintf("listen: %s\ntls: {cert: %s, key: %s}\nmasters: [1]\n", addr, files.Cert, files.Key))
	serial := func() (n int64) {
		conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return 0
		}
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	a.eventually("the first certificate is served", func() bool { return serial() == 7 })
	selfSigned(t, dir, 8)
	_ = a.cmd.Process.Signal(syscall.SIGHUP)
	a.eventually("the second certificate is served", func() bool { return serial() == 8 })
}
