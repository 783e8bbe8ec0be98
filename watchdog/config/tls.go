package config

import (
	"net"
	"path/filepath"
)

// TLS says how the page is served over TCP; empty: without TLS.
type TLS struct {
	Cert     string `yaml:"cert" doc:"file with the certificate of page, API and metrics, in PEM, followed by its chain; read again on SIGHUP"`
	Key      string `yaml:"key" doc:"file with its key, which only its owner may read"`
	ClientCA string `yaml:"client_ca" doc:"file with the authorities whose clients may connect (mTLS), in PEM; empty: SPINGUARD_TOKEN is asked for"`
}

func (t TLS) on() bool { return t != TLS{} }

// checkListen refuses to show requests to the network in the clear. Whether
// there is a token is known at the start only.
func (c *Config) checkListen() error {
	t := c.TLS
	for _, f := range []struct{ key, value string }{{"tls.cert", t.Cert}, {"tls.key", t.Key}, {"tls.client_ca", t.ClientCA}} {
		if f.value != "" && !filepath.IsAbs(f.value) {
			return bad(f.key, "%q is not an absolute path", f.value)
		}
	}
	if t.on() && (t.Cert == "" || t.Key == "") {
		return bad("tls", "needs both cert and key")
	}
	if c.Listen == "" {
		if t.on() {
			return bad("tls", "there is no TCP address to use it on; set listen")
		}
		return nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return bad("listen", "%q is not host:port, such as 127.0.0.1:9517", c.Listen)
	}
	if ip := net.ParseIP(host); host != "localhost" && host != "" && ip == nil {
		return bad("listen", "%q is no IP address", host)
	}
	if !Loopback(c.Listen) && !t.on() {
		return bad("listen", "%q is not a loopback address: the network would read requests in the clear; set tls.cert and tls.key, and SPINGUARD_TOKEN or tls.client_ca", host)
	}
	return nil
}

// Loopback says whether only this host can reach an address host:port.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && loopback(host)
}
