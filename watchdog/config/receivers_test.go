package config

import (
	"encoding/json"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

func TestReceivers(t *testing.T) {
	c, err := Parse([]byte("notify: {webhook: 'https://hooks.example/T0/SECRET?x=1', alertmanager: 'http://127.0.0.1:9093', page: 'https://lb-7.example/spinguard'}\nexport: {pyroscope: 'http://p:4040/tenant'}\n"))
	if err != nil || c.Export.Name != "spinguard" {
		t.Fatal(err, c.Export)
	}
	for text, want := range map[string]string{
		"notify:\n  webhook: hooks.example\n":                       "line 2: notify.webhook: is no URL",
		"notify:\n  webhook: 'ftp://h/SECRET'\n":                    "is no URL",
		"notify:\n  alertmanager: 'http://u:SECRET@h/'\n":           "authorization_file",
		"notify: {alertmanager: 'http://h/?a=SECRET'}\n":            "can't have a query",
		"notify: {page: 'http://h/#SECRET'}\n":                      "fragment",
		"notify:\n  authorization_file: token\n":                    "line 2: notify.authorization_file",
		"export:\n  pyroscope: 'http://h'\n  name: 'a{b=c}'\n":      "line 3: export.name",
		"export: {pyroscope: 'http://[::1'}\n":                      "is no URL",
		"export:\n  name: x\n  otlp: 'collector:4318/SECRET'\n":     "line 3: export.otlp: is no URL",
		"export: {otlp: 'http://h/?a=SECRET'}\n":                    "can't have a query",
		"notify: {slack: 'https://hooks.example/'}\n":               "slack: no such key here",
		"notify: {webhook: ['https://hooks.example/']}\n":           "line 1",
		"export: {authorization_file: '../token', pyroscope: ''}\n": "not an absolute path",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: %v, want %q in it and no secret", text, err, want)
		}
	}
}

// The page shows the settings in force; secrets stay out of it.
func TestSettingsHideTheSecretOfAWebhook(t *testing.T) {
	c := Default()
	c.Notify.Webhook = "https://hooks.example/T0/SECRET?token=SECRET"
	asYAML, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(asYAML), string(asJSON)} {
		if strings.Contains(text, "SECRET") || !strings.Contains(text, "https://hooks.example/...") {
			t.Errorf("settings: %s", text)
		}
	}
}
