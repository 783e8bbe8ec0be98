package main

import (
	"fmt"
	"net"
	"path/filepath"

	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/web"
)

// socketName is the agent's unix socket below its run_dir.
const socketName = "agent.sock"

// listen opens the agent's sockets. The unix socket comes first: it also keeps
// a second agent from starting.
func listen(cfg config.Config, token string) (_ []net.Listener, _ *web.Certificates, err error) {
	unix, err := web.ListenUnix(filepath.Join(cfg.RunDir, socketName))
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			unix.Close()
		}
	}()
	if cfg.Listen == "" {
		return []net.Listener{unix}, nil, nil
	}
	if cfg.TLS.Cert == "" {
		tcp, err := web.ListenTCP(cfg.Listen)
		if err != nil {
			return nil, nil, fmt.Errorf("%v; choose another address with listen: in the configuration, or listen: \"\"", err)
		}
		return []net.Listener{unix, tcp}, nil, nil
	}
	if token == "" && cfg.TLS.ClientCA == "" && !config.Loopback(cfg.Listen) {
		return nil, nil, fmt.Errorf("listen %q: everybody on the network could read requests; set SPINGUARD_TOKEN in the environment (the unit reads /etc/spinguard/token.env), or tls.client_ca", cfg.Listen)
	}
	certificates, err := web.LoadCertificates(cfg.TLS.Cert, cfg.TLS.Key, cfg.TLS.ClientCA)
	if err != nil {
		return nil, nil, err
	}
	tcp, err := certificates.Listen(cfg.Listen)
	if err != nil {
		return nil, nil, err
	}
	return []net.Listener{unix, tcp}, certificates, nil
}
