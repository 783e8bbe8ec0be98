package watchdog

import (
	"errors"
	"fmt"

	"github.com/spinguard/spinguard/proxy/haproxyctl"
	"github.com/spinguard/spinguard/watchdog/config"
)

var errNotOurs = errors.New("somebody else has taken it out already")

// out says whether a server is out in a certain way.
func out(s haproxyctl.Server, how config.Quarantine) bool {
	switch how {
	case config.Drain:
		return s.Drained()
	case config.Weight:
		return s.Weight == 0
	}
	return s.Maintenance()
}

// takeOut takes a server out of its backend, unless somebody else did, and
// returns the weight that it had.
func takeOut(addresses []string, h serverHold) (weight int, err error) {
	c, err := session(addresses)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	s, err := find(c, h.Backend, h.Server)
	if err != nil {
		return 0, err
	}
	if s.Maintenance() || s.Drained() || s.Weight == 0 {
		return h.Weight, errNotOurs
	}
	switch h.How {
	case config.Weight:
		err = c.SetWeight(s, 0)
	case config.Drain:
		err = c.SetState(h.Backend, h.Server, "drain")
	default:
		err = c.SetState(h.Backend, h.Server, "maint")
	}
	if err != nil {
		return 0, err
	}
	after, err := find(c, h.Backend, h.Server)
	if err == nil && !out(after, h.How) {
		err = fmt.Errorf("HAProxy took the command, but the server is not out (%s)", h.How)
	}
	return s.Weight, err
}

// putBack undoes what takeOut did, if it still is so.
func putBack(addresses []string, h serverHold) error {
	c, err := session(addresses)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	s, err := find(c, h.Backend, h.Server)
	if err != nil || !out(s, h.How) {
		return err
	}
	switch {
	case h.How == config.Weight && h.Weight > 0:
		return c.SetWeight(s, h.Weight)
	case h.How == config.Weight: // the agent died before it could note the weight
		return c.SetWeight(s, s.Initial)
	case h.How == config.Drain && s.Maintenance():
		return nil // "ready" would end also what somebody else did since
	}
	return c.SetState(h.Backend, h.Server, "ready")
}
