package doctor

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/spinguard/spinguard/balancer"
	"github.com/spinguard/spinguard/doctor/nginxconf"
	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/proxy"
)

// Ways says what the agent's configuration has for proxies without the
// library: culprits to read off their stacks, and a hook to refuse them with.
type Ways struct{ Culprits, Hook bool }

// quarantineFacts are what decides whether a version of an nginx's upstreams
// can be refused.
type quarantineFacts struct {
	lua       bool   // a Lua VM runs in it
	ledger    string // that a worker reads; empty: none
	ledgerErr error  // why the agent can't use it
	required  string // where the library is required; empty: nowhere
	unread    bool   // the configuration can't be read
	ways      Ways
}

const hangsAgain = "a stuck worker can only be replaced, and hangs again if its cause is still there"

// finding says whether quarantine will work and why not.
func (q quarantineFacts) finding(name string) Finding {
	f := Finding{Check: name + " quarantine", Level: OK}
	switch {
	case q.ledger != "" && q.ledgerErr == nil:
		f.Found = "will work: its workers read the ledger " + q.ledger
	case q.ledger != "":
		f.Level, f.Found, f.Why = Warn, "won't work: "+q.ledgerErr.Error(), hangsAgain
		f.Remedy = "a ledger that anybody but its workers' user and root may write is not trusted: mend owner and mode of file and folder, or remove the file and reload nginx"
	case q.ways.Culprits && q.ways.Hook:
		f.Found = "will work by culprits and quarantine_hook of the agent's configuration; " + q.noLedger()
	case !q.lua:
		f.Found = "won't work, and is not needed: no Lua runs in it, so no Lua can be stuck"
	case q.ways.Culprits || q.ways.Hook:
		lacks := "quarantine_hook"
		if q.ways.Hook {
			lacks = "culprits"
		}
		f.Level, f.Found, f.Why = Warn, "won't work: "+q.noLedger()+", and the agent's configuration has no "+lacks, hangsAgain
		f.Remedy = "set " + lacks + " as well, or have nginx require resty.spinguard"
	case q.required != "":
		f.Level, f.Found, f.Why = Warn, "won't work: "+q.noLedger(), hangsAgain
		f.Remedy = "call spinguard.init in init_by_lua, reload nginx, and look into its error log"
	default:
		f.Level, f.Found, f.Why = Warn, "won't work: "+q.noLedger()+", and no culprits and quarantine_hook were given", hangsAgain
		f.Remedy = "have nginx require resty.spinguard (see deploy/nginx/nginx.conf), or set culprits and quarantine_hook and run doctor with --config"
	}
	return f
}

// noLedger says why no worker reads one.
func (q quarantineFacts) noLedger() string {
	if q.required != "" {
		return "resty.spinguard is required (" + q.required + "), but the worker reads no ledger"
	}
	if q.unread {
		return "its workers read no ledger, and whether its configuration requires resty.spinguard can't be read"
	}
	return "its configuration does not require resty.spinguard"
}

// requireLine finds the library in Lua; a comment does not count.
var requireLine = regexp.MustCompile(`(?m)^[^\n]*?\brequire[ (]*["'\[]+resty\.spinguard\b`)

func requires(lua string) bool {
	for _, line := range requireLine.FindAllString(lua, -1) {
		if comment := strings.Index(line, "--"); comment < 0 {
			return true
		}
	}
	return false
}

// requiredAt says where a configuration requires the library: in blocks,
// arguments and files of Lua that it names itself.
func requiredAt(list []nginxconf.Directive, r nginxconf.Reader, prefix string) (where string) {
	each(list, func(d nginxconf.Directive) {
		text := d.Lua
		if where != "" || !strings.Contains(d.Name, "_by_lua") {
			return
		}
		if strings.HasSuffix(d.Name, "_by_lua_file") && len(d.Args) > 0 {
			file := d.Args[0]
			if !path.IsAbs(file) {
				file = path.Join(prefix, file)
			}
			lua, _ := r.Read(file) // names with variables and what is gone require nothing
			text = string(lua)
		} else if len(d.Args) > 0 {
			text += "\n" + d.Args[0]
		}
		if requires(text) {
			where = at(d)
		}
	})
	return where
}

// ledgerOf returns the ledger that a worker reads, and why it can't be used.
func ledgerOf(w proxy.Worker, mem procmem.Memory) (string, error) {
	maps, err := procmem.ReadMaps(w.PID)
	if err != nil {
		return "", nil // it has ended
	}
	file := balancer.FindFiles(maps, mem, w.PID).Ledger
	if file == "" {
		return "", nil
	}
	l, err := balancer.OpenLedger(file)
	if err != nil {
		return file, fmt.Errorf("ledger: %v", err)
	}
	return file, l.Close()
}
