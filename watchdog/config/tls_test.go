package config

import (
	"strings"
	"testing"
)

func TestListenElsewhereNeedsTLS(t *testing.T) {
	for text, want := range map[string]string{
		"listen: 127.0.0.1:1\n":                   "",
		"listen: localhost:1\n":                   "",
		"listen: '[::1]:1'\n":                     "",
		"listen: 0.0.0.0:80\n":                    `line 1: listen: "0.0.0.0" is not a loopback address`,
		"mode: observe\nlisten: ':80'\n":          "line 2: listen: ",
		"listen: '[::]:80'\n":                     "is not a loopback address",
		"listen: lb-7.example:80\n":               `"lb-7.example" is no IP address`,
		"listen: 127.0.0.1\n":                     "is not host:port",
		"listen: :80\ntls: {cert: /c, key: /k}\n": "",
		"listen: 10.0.0.1:80\ntls: {cert: /c, key: /k, client_ca: /a}\n": "",
		"listen: :80\ntls:\n  cert: /c\n":                                "line 2: tls: needs both cert and key",
		"listen: :80\ntls: {client_ca: /a}\n":                            "needs both cert and key",
		"listen: :80\ntls:\n  cert: /c\n  key: k\n":                      "line 4: tls.key: \"k\" is not an absolute path",
		"listen: ''\ntls: {cert: /c, key: /k}\n":                         "there is no TCP address",
	} {
		_, err := Parse([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
