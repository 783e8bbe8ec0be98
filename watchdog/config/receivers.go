package config

import (
	"net/url"
	"path/filepath"
)

// URL is an address whose path may hold a secret, as those of webhooks do: it
// is printed without it.
type URL string

// MarshalText gives the address without path, query and credentials.
func (u URL) MarshalText() ([]byte, error) {
	if u == "" {
		return nil, nil
	}
	p, err := url.Parse(string(u))
	if err != nil {
		return []byte("masked"), nil
	}
	shown := p.Scheme + "://" + p.Host
	if p.Path != "" && p.Path != "/" {
		shown += "/..."
	}
	return []byte(shown), nil
}

// Notify says who is told about incidents.
type Notify struct {
	Webhook       URL    `yaml:"webhook" doc:"POST a JSON event here when an incident opens, is refused an action, or ends"`
	Alertmanager  URL    `yaml:"alertmanager" doc:"base URL of an Alertmanager; its API v2 gets an alert for each open incident"`
	Page          string `yaml:"page" doc:"base URL of this agent's page, for the links in events and alerts; default: http:// and listen"`
	Authorization string `yaml:"authorization_file" doc:"file whose text is sent as the Authorization header, such as Bearer SECRET"`
}

// Export says where profiles of incidents are pushed.
type Export struct {
	Pyroscope     URL    `yaml:"pyroscope" doc:"base URL of a Pyroscope; its /ingest gets the profile of each incident"`
	OTLP          URL    `yaml:"otlp" doc:"base URL of an OTLP receiver of profiles, such as http://127.0.0.1:4318; /v1development/profiles below it gets, by HTTP in protobuf, the profile of each incident"`
	Name          string `yaml:"name" doc:"application name of the pushed profiles"`
	Authorization string `yaml:"authorization_file" doc:"file whose text is sent as the Authorization header"`
}

func (c *Config) checkReceivers() error {
	urls := []struct{ key, value string }{
		{"notify.webhook", string(c.Notify.Webhook)}, {"notify.alertmanager", string(c.Notify.Alertmanager)},
		{"notify.page", c.Notify.Page}, {"export.pyroscope", string(c.Export.Pyroscope)}, {"export.otlp", string(c.Export.OTLP)},
	}
	for _, u := range urls {
		if err := checkURL(u.key, u.value); err != nil {
			return err
		}
	}
	for _, f := range []struct{ key, value string }{
		{"notify.authorization_file", c.Notify.Authorization}, {"export.authorization_file", c.Export.Authorization},
	} {
		if f.value != "" && !filepath.IsAbs(f.value) {
			return bad(f.key, "%q is not an absolute path", f.value)
		}
	}
	if !nameOfApplication(c.Export.Name) {
		return bad("export.name", "%q is not 1 to 100 letters, digits, dots, dashes and underscores", c.Export.Name)
	}
	return nil
}

// checkURL names the key only: the value may be a secret.
func checkURL(key, value string) error {
	if value == "" {
		return nil
	}
	u, err := url.Parse(value)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return bad(key, "is no URL such as https://host/path")
	case u.User != nil:
		return bad(key, "has a password in it; put it into authorization_file")
	case u.Fragment != "":
		return bad(key, "has a fragment (#), which is never sent")
	case key != "notify.webhook" && u.RawQuery != "":
		return bad(key, "is a base URL and can't have a query (?)")
	}
	return nil
}

func nameOfApplication(s string) bool {
	if s == "" || len(s) > 100 {
		return false
	}
	for _, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && r != '.' && r != '-' && r != '_' {
			return false
		}
	}
	return true
}
