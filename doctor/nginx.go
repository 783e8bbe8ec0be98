package doctor

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spinguard/spinguard/doctor/nginxconf"
	"github.com/spinguard/spinguard/proxy"
)

// nginxFiles reads the configuration of an nginx as its master sees it.
func nginxFiles(p proxy.Proxy) ([]nginxconf.Directive, nginxconf.Reader, error) {
	r := rootReader(fmt.Sprintf("/proc/%d/root", p.Master))
	if p.ConfPath == "" {
		return nil, r, errors.New("the path of its configuration is not known")
	}
	file := p.ConfPath
	if !path.IsAbs(file) {
		file = path.Join(p.Prefix, file)
	}
	list, err := nginxconf.Parse(r, file)
	return list, r, err
}

// configuration checks the settings of an nginx, whether its library is the
// agent's, and whether what it does can be refused.
func (h Host) configuration(p proxy.Proxy, q quarantineFacts) []Finding {
	list, r, err := nginxFiles(p)
	q.required, q.unread = requiredAt(list, r, p.Prefix), err != nil
	out := []Finding{q.finding(p.Name)}
	if q.lua {
		cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.Master))
		out = append(out, library(p.Name, r, luaPath(list, strings.TrimSuffix(p.Prefix, "/"), cwd), q.required != "" || q.ledger != ""))
	}
	if err != nil {
		return append(out, Finding{Check: p.Name + " configuration", Level: Warn, Found: err.Error(), Why: "its settings can't be checked", Remedy: "nginx -t says whether it is whole"})
	}
	handles := 0
	if len(p.Workers) > 0 {
		handles, _ = openFiles(p.Workers[0].PID)
	}
	somaxconn, _ := h.number("/proc/sys/net/core/somaxconn")
	return append(out, CheckNginx(p.Name, list, Limits{OpenFiles: handles, Somaxconn: somaxconn})...)
}

// maxFile bounds one file of a configuration.
const maxFile = 4 << 20

// rootReader reads below the root folder of a process.
func rootReader(root string) nginxconf.Reader {
	return nginxconf.Reader{
		Read: func(name string) ([]byte, error) {
			full := filepath.Join(root, path.Clean("/"+name))
			info, err := os.Stat(full)
			if err != nil {
				return nil, err
			}
			if !info.Mode().IsRegular() || info.Size() > maxFile {
				return nil, fmt.Errorf("%s: no file of at most %d bytes", name, maxFile)
			}
			return os.ReadFile(full)
		},
		Glob: func(pattern string) []string {
			found, _ := filepath.Glob(filepath.Join(root, path.Clean("/"+pattern))) // a bad pattern matches nothing
			for i, f := range found {
				found[i] = "/" + f[min(len(f), len(root)+1):]
			}
			slices.Sort(found)
			return found
		},
	}
}

// Limits are the numbers of the host that settings are held against; 0 means
// unknown.
type Limits struct{ OpenFiles, Somaxconn, CPUs int }

// CheckNginx returns what in a configuration will hurt, at most one finding a
// kind and place.
func CheckNginx(name string, list []nginxconf.Directive, l Limits) []Finding {
	c := &nginxCheck{name: name, limits: l, connections: 512, upstreams: map[string]int{}}
	c.collect(list)
	c.walk(list, inherited{})
	c.whole()
	return c.found
}
