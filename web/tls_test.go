package web

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority issues certificates in a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue returns a certificate and its key, in PEM.
func (a authority) issue(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	asDER, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: asDER})
}

func save(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// secure is a server on a TLS listener.
type secure struct {
	*Certificates
	ca   authority
	dir  string
	addr string
}

// serveTLS serves as for another host; clients is who may connect, nil for all.
func serveTLS(t *testing.T, token string, clients []byte) secure {
	t.Helper()
	e := secure{ca: newAuthority(t), dir: t.TempDir()}
	cert, key := e.ca.issue(t, "lb-7.example")
	ca := ""
	if clients != nil {
		ca = save(t, e.dir, "clients.pem", clients)
	}
	var err error
	if e.Certificates, err = LoadCertificates(save(t, e.dir, "cert.pem", cert), save(t, e.dir, "key.pem", key), ca); err != nil {
		t.Fatal(err)
	}
	l, err := e.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e.addr = l.Addr().String()
	s, _ := server(t)
	s.o.Token, s.o.Private, s.o.Exposed, s.o.Certificates = token, token != "", true, e.Certificates
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return e
}

// client makes one that trusts our authority, with a certificate or without.
func (e secure) client(t *testing.T, cert, key []byte) *http.Client {
	t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AddCert(e.ca.cert)
	if cert != nil {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		// Sent also to a server that asks for those of other authorities.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	tr := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// ask returns the status of a request, or 0 if there was no connection.
func (e secure) ask(t *testing.T, c *http.Client, method, path, host, token string) int {
	t.Helper()
	r, err := http.NewRequest(method, "https://"+e.addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.Do(r)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// Served to other hosts with a token, all but the door needs it, metrics too.
func TestTLSWithToken(t *testing.T) {
	e := serveTLS(t, "secret", nil)
	c := e.client(t, nil, nil)
	const host = "lb-7.example:9517"
	for _, test := range []struct {
		method, path, host, token string
		want                      int
	}{
		{"GET", "/api/workers", host, "", 401},
		{"GET", "/api/workers", host, "wrong", 401},
		{"GET", "/api/workers", host, "secret", 200},
		{"GET", "/metrics", host, "", 401},
		{"GET", "/healthz", host, "", 200},
		{"DELETE", "/api/quarantines/none?reason=x", host, "", 401},
		{"DELETE", "/api/quarantines/none?reason=x", host, "secret", 404},
		{"GET", "/api/workers", "evil.example", "secret", 421}, // rebinding
	} {
		if got := e.ask(t, c, test.method, test.path, test.host, test.token); got != test.want {
			t.Errorf("%s %s at %s with %q: %d, want %d", test.method, test.path, test.host, test.token, got, test.want)
		}
	}
	if answer, err := http.Get("http://" + e.addr + "/healthz"); err == nil {
		_ = answer.Body.Close()
		if answer.StatusCode == 200 {
			t.Error("it also answers without TLS")
		}
	}
	old := &tls.Config{MaxVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	if conn, err := tls.Dial("tcp", e.addr, old); err == nil {
		_ = conn.Close()
		t.Error("it takes TLS 1.2")
	}
}

// With mTLS only clients of the given authority get in; their certificate is
// as good as the token, unless there is one.
func TestMutualTLS(t *testing.T) {
	clients, strangers := newAuthority(t), newAuthority(t)
	cert, key := clients.issue(t, "operator")
	otherCert, otherKey := strangers.issue(t, "operator")
	for token, want := range map[string][2]int{"": {200, 404}, "secret": {401, 401}} {
		e := serveTLS(t, token, clients.pem)
		const host = "lb-7.example"
		if got := e.ask(t, e.client(t, nil, nil), "GET", "/healthz", host, token); got != 0 {
			t.Errorf("without a certificate: %d", got)
		}
		if got := e.ask(t, e.client(t, otherCert, otherKey), "GET", "/healthz", host, token); got != 0 {
			t.Errorf("with the certificate of a stranger: %d", got)
		}
		c := e.client(t, cert, key)
		if got := e.ask(t, c, "GET", "/api/workers", host, ""); got != want[0] {
			t.Errorf("token %q: reading: %d, want %d", token, got, want[0])
		}
		if got := e.ask(t, c, "DELETE", "/api/quarantines/none?reason=x", host, ""); got != want[1] {
			t.Errorf("token %q: lifting: %d, want %d", token, got, want[1])
		}
		if got := e.ask(t, c, "GET", "/api/workers", host, token); got != 200 {
			t.Errorf("token %q: with both: %d", token, got)
		}
	}
}

// New certificates hold for the next connection, broken ones change nothing.
func TestCertificatesAreReloaded(t *testing.T) {
	clients, later := newAuthority(t), newAuthority(t)
	cert, key := clients.issue(t, "operator")
	laterCert, laterKey := later.issue(t, "operator")
	e := serveTLS(t, "", clients.pem)
	serial := func() string {
		t.Helper()
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := tls.Dial("tcp", e.addr, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		return fmt.Sprint(conn.ConnectionState().PeerCertificates[0].SerialNumber)
	}
	first := serial()
	save(t, e.dir, "cert.pem", []byte("half a certif"))
	if err := e.Reload(); err == nil || !strings.Contains(err.Error(), "tls.cert") {
		t.Errorf("half a certificate: %v", err)
	}
	if got := serial(); got != first {
		t.Error("a broken certificate was put in force")
	}
	next, nextKey := e.ca.issue(t, "lb-7.example")
	save(t, e.dir, "cert.pem", next)
	save(t, e.dir, "key.pem", nextKey)
	save(t, e.dir, "clients.pem", later.pem)
	if err := e.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := e.ask(t, e.client(t, cert, key), "GET", "/healthz", "lb-7.example", ""); got != 0 {
		t.Errorf("a client whose authority was taken away: %d", got)
	}
	if got := e.ask(t, e.client(t, laterCert, laterKey), "GET", "/healthz", "lb-7.example", ""); got != 200 {
		t.Errorf("a client of the new authority: %d", got)
	}
	cert, key = laterCert, laterKey
	if got := serial(); got == first {
		t.Error("the old certificate is still in force")
	}
}

func TestKeysMustBePrivate(t *testing.T) {
	dir, ca := t.TempDir(), newAuthority(t)
	cert, key := ca.issue(t, "lb-7.example")
	c, k := save(t, dir, "c", cert), save(t, dir, "k", key)
	if err := os.Chmod(k, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCertificates(c, k, ""); err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("a key that everybody may read: %v", err)
	}
	if err := os.Chmod(k, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCertificates(c, k, ""); err != nil {
		t.Error(err)
	}
	if _, err := LoadCertificates(c, k, save(t, dir, "a", bytes.Repeat([]byte("x"), 10))); err == nil || !strings.Contains(err.Error(), "tls.client_ca") {
		t.Errorf("no authorities: %v", err)
	}
}
