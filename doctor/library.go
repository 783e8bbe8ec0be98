package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spinguard/spinguard/proxy"
)

// libraryVersion is that of the in-proxy library this agent was built with.
const libraryVersion = "0.1.0"

var versionLine = regexp.MustCompile(`_VERSION = "([0-9.]{1,20})"`)

// library finds the in-proxy library where nginx looks for Lua by itself.
func library(p proxy.Proxy) []Finding {
	for _, dir := range []string{"/usr/local/share/lua/5.1", "/usr/share/lua/5.1", "/usr/local/openresty/site/lualib", "/usr/local/openresty/lualib"} {
		file := filepath.Join(dir, "resty/spinguard/layout.lua")
		text, err := os.ReadFile(filepath.Join(fmt.Sprintf("/proc/%d/root", p.Master), file))
		if err != nil {
			continue
		}
		return []Finding{libraryFinding(p.Name, file, text)}
	}
	return []Finding{{Check: p.Name + " library", Level: OK, Found: "resty.spinguard is not in the usual places; without it, or culprits in the configuration, nothing can be quarantined"}}
}

func libraryFinding(name, file string, text []byte) Finding {
	version := "unknown"
	if m := versionLine.FindSubmatch(text); m != nil {
		version = string(m[1])
	}
	f := Finding{Check: name + " library", Level: OK, Found: fmt.Sprintf("resty.spinguard %s in %s", version, file)}
	if version != libraryVersion {
		f.Level, f.Why = Warn, "the agent was built with "+libraryVersion+"; a quarantine may not be understood"
		f.Remedy = "install library and agent from one package, then reload nginx"
	}
	return f
}
