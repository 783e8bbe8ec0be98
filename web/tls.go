package web

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"golang.org/x/net/netutil"
)

// maxConnections bounds how many clients from elsewhere are connected at once.
const maxConnections = 256

// Certificates are what TCP is served with: a certificate with its key and, for
// mTLS, the authorities whose clients may connect. Goroutines may share them.
type Certificates struct {
	cert, key, clientCA string
	now                 atomic.Pointer[tls.Config]
}

// LoadCertificates reads the files. With clientCA empty, any client may
// connect.
func LoadCertificates(cert, key, clientCA string) (*Certificates, error) {
	c := &Certificates{cert: cert, key: key, clientCA: clientCA}
	return c, c.Reload()
}

// Reload reads the files again, for the connections to come. With an error, the
// old ones stay in force.
func (c *Certificates) Reload() error {
	if info, err := os.Stat(c.key); err == nil && info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("tls.key: everybody may read %s; chmod o= %s", c.key, c.key)
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("tls.cert and tls.key: %s", err)
	}
	if pair.Leaf == nil {
		return errors.New("tls.cert: no certificate")
	}
	next := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	if c.clientCA != "" {
		text, err := os.ReadFile(c.clientCA)
		if err != nil {
			return fmt.Errorf("tls.client_ca: %s", err)
		}
		next.ClientCAs = x509.NewCertPool()
		if !next.ClientCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("tls.client_ca: no certificate in %s", c.clientCA)
		}
		next.ClientAuth = tls.RequireAndVerifyClientCert
	}
	c.now.Store(next)
	return nil
}

// Knows says whether a host name is one that the certificate is for.
func (c *Certificates) Knows(host string) bool {
	return c.now.Load().Certificates[0].Leaf.VerifyHostname(host) == nil
}

// Listen listens on a TCP address with these certificates. Sessions are not
// resumed over a reload, so that a client that is no longer welcome is asked
// anew.
func (c *Certificates) Listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen %q: %s", addr, err)
	}
	outer := &tls.Config{
		MinVersion:         tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.now.Load(), nil },
	}
	// Who does not get past the handshake must not use up our file handles.
	return tls.NewListener(netutil.LimitListener(l, maxConnections), outer), nil
}

// hasCertificate says whether a client showed a certificate that we asked for.
func hasCertificate(r *http.Request) bool { return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 }
