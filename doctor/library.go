package doctor

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/spinguard/spinguard/doctor/nginxconf"
)

// libraryVersion is that of the in-proxy library this agent was built with.
const libraryVersion = "0.1.0"

var versionLine = regexp.MustCompile(`_VERSION = "([0-9.]{1,20})"`)

// The folders in which Lua looks by itself: LuaJIT's of Debian, and
// OpenResty's.
var defaultPath = []string{
	"/usr/local/share/lua/5.1/?.lua", "/usr/local/share/lua/5.1/?/init.lua", "/usr/share/lua/5.1/?.lua", "/usr/share/lua/5.1/?/init.lua",
	"/usr/local/openresty/site/lualib/?.lua", "/usr/local/openresty/lualib/?.lua",
}

// maxTemplates bounds the places that are looked at.
const maxTemplates = 100

// luaPath returns the templates of file names that nginx's Lua tries, in that
// order. Relative ones are below cwd.
func luaPath(list []nginxconf.Directive, prefix, cwd string) []string {
	set := ";;"
	each(list, func(d nginxconf.Directive) {
		if d.Name == "lua_package_path" && len(d.Args) == 1 {
			set = d.Args[0]
		}
	})
	set = strings.NewReplacer("${prefix}", prefix+"/", "$prefix", prefix+"/").Replace(set)
	set = strings.ReplaceAll(set, ";;", ";"+strings.Join(defaultPath, ";")+";")
	var out []string
	for _, template := range strings.Split(set, ";") {
		if template == "" || len(out) == maxTemplates {
			continue
		}
		if !path.IsAbs(template) {
			template = path.Join(cwd, template)
		}
		out = append(out, template)
	}
	return out
}

// each calls f for all directives, outer ones first.
func each(list []nginxconf.Directive, f func(nginxconf.Directive)) {
	for _, d := range list {
		f(d)
		each(d.Block, f)
	}
}

// library finds the in-proxy library where this nginx looks for Lua. used: its
// configuration or a worker shows that it is wanted.
func library(name string, r nginxconf.Reader, templates []string, used bool) Finding {
	for _, template := range templates {
		file := strings.ReplaceAll(template, "?", "resty/spinguard/layout")
		text, err := r.Read(file)
		if err == nil {
			return libraryFinding(name, file, text)
		}
		if !os.IsNotExist(err) && used {
			return Finding{Check: name + " library", Level: Warn, Found: err.Error(), Why: "its version can't be held against the agent's", Remedy: "see the message"}
		}
	}
	f := Finding{Check: name + " library", Level: OK, Found: fmt.Sprintf("no resty.spinguard in the %d places where this nginx looks for Lua", len(templates))}
	if used {
		f.Level, f.Why, f.Remedy = Warn, "the configuration wants it: the next reload fails", "install it, or add its folder to lua_package_path"
	}
	return f
}

func libraryFinding(name, file string, text []byte) Finding {
	version := "unknown"
	if m := versionLine.FindSubmatch(text); m != nil {
		version = string(m[1])
	}
	f := Finding{Check: name + " library", Level: OK, Found: fmt.Sprintf("resty.spinguard %s in %s, as the agent's", version, file)}
	if version != libraryVersion {
		f.Level, f.Found = Warn, fmt.Sprintf("resty.spinguard %s in %s", version, file)
		f.Why = "the agent was built with " + libraryVersion + "; a quarantine may not be understood"
		f.Remedy = "install library and agent from one package, then reload nginx"
	}
	return f
}
