package watchdog

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spinguard/spinguard/profiler/stack"
	"github.com/spinguard/spinguard/proxy"
	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/watchdog/respond"
)

// culpritOf says which version of which upstream made a worker stuck, and the
// version's digest where the crumb tells it: from the crumb if a picker is
// running, else from the Lua frames that the configuration names.
func (a *Agent) culpritOf(w *worker) (respond.Culprit, string) {
	if c := w.crumb; c.Active {
		return respond.Culprit{Proxy: w.in.Name, Upstream: c.Upstream, Version: strconv.FormatUint(c.Version, 10)}, c.Digest
	}
	for _, rule := range a.cfg.Culprits {
		if upstream, version, ok := fromLocals(w.result.Stack, rule, w.process); ok {
			return respond.Culprit{Proxy: w.in.Name, Upstream: upstream, Version: version}, ""
		}
	}
	if w.Kind == proxy.HAProxy {
		if backend, server, why := w.serverOf(); why == "" {
			return respond.Culprit{Proxy: w.in.Name, Upstream: backend, Server: server}, ""
		}
	}
	return respond.Culprit{}, ""
}

// condemned says that the worker picks by a version that is the culprit of an
// open incident of its proxy.
func (a *Agent) condemned(w *worker) bool {
	if !w.crumb.Active {
		return false
	}
	for _, e := range a.episodes {
		if e.culprit.Version != "" && e.in.Master == w.in.Master && e.culprit.Upstream == w.crumb.Upstream &&
			e.culprit.Version == strconv.FormatUint(w.crumb.Version, 10) {
			return true
		}
	}
	return false
}

// fromLocals reads upstream and version off the innermost frame of the chunk
// that has both locals. "upstream.name" is the field of the table in a local.
func fromLocals(s stack.Stack, rule config.Culprit, t tables) (upstream, version string, ok bool) {
	for _, f := range s.Frames {
		if (f.Kind != stack.Lua && f.Kind != stack.Trace) || path.Base(f.File) != rule.Frame {
			continue
		}
		upstream, ok1 := field(f.Values, rule.Upstream, t)
		version, ok2 := field(f.Values, rule.Version, t)
		if ok1 && ok2 {
			return upstream, version, true
		}
	}
	return "", "", false
}

// Bounds of a path of fields.
const (
	fieldsDeep = 4
	fieldsMax  = 256 // of one table
)

// field returns the text of a local, or of a field of a table in a local.
func field(values []stack.Value, path string, t tables) (string, bool) {
	for range fieldsDeep {
		name, rest, deeper := strings.Cut(path, ".")
		if !deeper {
			return scalar(values, name)
		}
		i := slices.IndexFunc(values, func(v stack.Value) bool { return v.Name == name && v.Addr != 0 })
		if i < 0 {
			return "", false
		}
		values, path = t.Table(values[i].Addr, fieldsMax), rest
	}
	return "", false
}

// scalar returns the text of a string or number with the name.
func scalar(values []stack.Value, name string) (string, bool) {
	for _, v := range values {
		if v.Name != name {
			continue
		}
		switch v.Type {
		case "string":
			quoted, err := strconv.QuotedPrefix(v.Text) // a remark may follow
			if err != nil {
				return "", false
			}
			text, err := strconv.Unquote(quoted)
			return text, err == nil && text != ""
		case "number":
			text, _, _ := strings.Cut(v.Text, " ")
			return text, text != ""
		}
	}
	return "", false
}
