package proxy

import "testing"

func TestNames(t *testing.T) {
	n := names{}
	at := func(id, listen string) Proxy {
		return Proxy{ID: id, Kind: Nginx, Version: "Tengine/2.4", Listen: []string{listen}}
	}
	list := []Proxy{at("nginx-1", "a:80"), at("nginx-2", "a:80")}
	n.give(list)
	if list[0].Name != "tengine@a:80" || list[1].Name != "tengine@a:80#2" {
		t.Errorf("names %q, %q", list[0].Name, list[1].Name)
	}
	list = []Proxy{at("nginx-2", "b:80"), at("nginx-3", "a:80")}
	n.give(list)
	if list[0].Name != "tengine@a:80#2" || list[1].Name != "tengine@a:80" || len(n) != 2 {
		t.Errorf("names %q, %q after the first has gone; %d are kept", list[0].Name, list[1].Name, len(n))
	}
}
