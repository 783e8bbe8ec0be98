package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"text/template"
	"time"
)

// check returns the first thing that is wrong, as a *fieldError.
func (c *Config) check() error {
	for _, step := range []func() error{c.checkWords, c.checkPlaces, c.checkListen, c.checkRates, c.checkThresholds, c.checkCulprits, c.checkGoPprof, c.checkHook, c.checkRails, c.checkReceivers} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func bad(key, format string, args ...any) error {
	return &fieldError{key, fmt.Sprintf(format, args...)}
}

func (c *Config) checkWords() error {
	oneOf := func(key, value string, allowed ...string) error {
		if !slices.Contains(allowed, value) {
			return bad(key, "%q is none of %q", value, allowed)
		}
		return nil
	}
	if err := oneOf("mode", string(c.Mode), string(Observe), string(Enforce)); err != nil {
		return err
	}
	if err := oneOf("log_level", c.LogLevel, "debug", "info", "warn", "error"); err != nil {
		return err
	}
	if err := oneOf("signals.connects", string(c.Signals.Connects), string(Always), string(Suspected), string(Never)); err != nil {
		return err
	}
	if err := oneOf("haproxy.quarantine", string(c.HAProxy.Quarantine), string(Maint), string(Drain), string(Weight)); err != nil {
		return err
	}
	return oneOf("log_format", c.LogFormat, "console", "json")
}

func (c *Config) checkPlaces() error {
	for key, dir := range map[string]string{"state_dir": c.StateDir, "run_dir": c.RunDir} {
		if !filepath.IsAbs(dir) {
			return bad(key, "%q is not an absolute path", dir)
		}
	}
	return nil
}

func (c *Config) checkRates() error {
	if c.Sampling.Rate < 10 || c.Sampling.Rate > 999 {
		return bad("sampling.rate", "%d is not within 10 to 999 samples a second", c.Sampling.Rate)
	}
	if c.Sampling.Burst <= c.Sampling.Rate || c.Sampling.Burst > 5000 {
		return bad("sampling.burst", "%d is not above the steady rate %d, or over 5000", c.Sampling.Burst, c.Sampling.Rate)
	}
	return nil
}

func (c *Config) checkThresholds() error {
	if err := c.checkBudget(); err != nil {
		return err
	}
	t := c.Thresholds
	least := map[string]struct{ got, min time.Duration }{
		"thresholds.suspect":   {t.Suspect, 50 * time.Millisecond},
		"thresholds.runaway":   {t.Runaway, t.Suspect + 50*time.Millisecond},
		"thresholds.blocked":   {t.Blocked, 500 * time.Millisecond},
		"thresholds.spinning":  {t.Spinning, time.Second},
		"thresholds.act_after": {t.ActAfter, t.Runaway},
		"thresholds.young":     {t.Young, time.Second},
	}
	for _, key := range sortedKeys(least) {
		if v := least[key]; v.got < v.min || v.got > time.Hour {
			return bad(key, "%s is not within %s to 1h", v.got, v.min)
		}
	}
	return nil
}

func (c *Config) checkBudget() error {
	b := c.RequestBudget
	switch {
	case b.CPU != 0 && (b.CPU < 50*time.Millisecond || b.CPU > time.Hour):
		return bad("request_budget.cpu", "%s is neither 0 nor within 50ms to 1h", b.CPU)
	case b.Offences < 0 || b.Offences > 1000:
		return bad("request_budget.offences", "%d is not within 0 to 1000", b.Offences)
	case b.Offences > 0 && b.CPU == 0:
		return bad("request_budget.offences", "without request_budget.cpu no request is ever over it")
	case b.Within < time.Second || b.Within > 24*time.Hour:
		return bad("request_budget.within", "%s is not within 1s to 24h", b.Within)
	case b.Quarantine < time.Second || b.Quarantine > c.Rails.QuarantineMax:
		return bad("request_budget.quarantine", "%s is not within 1s to rails.quarantine_max, which is %s", b.Quarantine, c.Rails.QuarantineMax)
	}
	return nil
}

func (c *Config) checkCulprits() error {
	for i, culprit := range c.Culprits {
		if culprit.Frame == "" || culprit.Upstream == "" || culprit.Version == "" {
			return bad("culprits", "entry %d needs all of frame, upstream and version", i+1)
		}
	}
	return nil
}

func (c *Config) checkGoPprof() error {
	for i, g := range c.GoPprof {
		u, err := url.Parse(g.URL)
		if err != nil || u.Scheme != "http" || !loopback(u.Hostname()) {
			return bad("go_pprof", "entry %d: %q is not an http URL on loopback, such as http://127.0.0.1:2019/debug/pprof", i+1, g.URL)
		}
		if g.Proxy == "" {
			return bad("go_pprof", "entry %d needs the beginning of a proxy's name", i+1)
		}
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (c *Config) checkHook() error {
	h := c.Hook
	if h.File != "" && len(h.Command) > 0 {
		return bad("quarantine_hook", "file and command are both set; choose one")
	}
	if h.File != "" && !filepath.IsAbs(h.File) {
		return bad("quarantine_hook.file", "%q is not an absolute path", h.File)
	}
	if len(h.Command) > 0 && !filepath.IsAbs(h.Command[0]) {
		return bad("quarantine_hook.command", "%q is not the absolute path of a program", h.Command[0])
	}
	if h.Timeout <= 0 || h.Timeout > time.Minute {
		return bad("quarantine_hook.timeout", "%s is not within 1ms to 1m", h.Timeout)
	}
	for _, text := range append([]string{h.Line}, h.Command...) {
		if _, err := template.New("").Option("missingkey=error").Parse(text); err != nil {
			return bad("quarantine_hook", "template %q: %v", text, err)
		}
	}
	return nil
}

func (c *Config) checkRails() error {
	r := c.Rails
	switch {
	case r.Evictions < 0 || r.Evictions > 1000:
		return bad("rails.evictions", "%d is not within 0 to 1000", r.Evictions)
	case r.EvictionRefill < time.Second:
		return bad("rails.eviction_refill", "%s is under 1s", r.EvictionRefill)
	case r.QuarantineBase < time.Second || r.QuarantineMax < r.QuarantineBase || r.QuarantineMax > 24*time.Hour:
		return bad("rails.quarantine_base", "base %s and maximum %s are not within 1s to 24h, in this order", r.QuarantineBase, r.QuarantineMax)
	case r.PanicShare <= 0 || r.PanicShare > 1:
		return bad("rails.panic_share", "%v is not within 0 to 1", r.PanicShare)
	case c.Retention.Count < 1 || c.Retention.Bytes < 1<<20:
		return bad("retention", "%d incidents in %d bytes: keep at least 1 in 1 MiB", c.Retention.Count, c.Retention.Bytes)
	}
	return nil
}
