package proxy

import (
	"bytes"
	"strings"
)

// haproxyTexts reads a configuration file, or the files of a directory. HAProxy
// reads them before it changes its root directory (chroot), so the file may lie
// outside of the root that the process has now: then the root of its master
// tells, or ours if it lives in our file systems.
func haproxyTexts(pid, master int, file string) [][]byte {
	roots := []string{procPath(pid, "root")}
	if master > 0 {
		roots = append(roots, procPath(master, "root"))
	}
	if ns := readlink(procPath(pid, "ns/mnt")); ns != "" && ns == readlink("/proc/self/ns/mnt") {
		roots = append(roots, "")
	}
	for _, root := range roots {
		if texts := readConfigs(root+file, 64); len(texts) > 0 {
			return texts
		}
	}
	return nil
}

// haproxySection is a proxy section of a HAProxy configuration.
type haproxySection struct {
	kind    string // frontend, backend or listen
	servers map[string]bool
}

// parseSections reads names only: enough to recognize them in memory.
func parseSections(text []byte, sections map[string]*haproxySection) {
	var current *haproxySection
	for _, line := range bytes.Split(text, []byte("\n")) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		f := strings.Fields(string(line))
		if len(f) == 0 {
			continue
		}
		switch name := unquote(f, 1); {
		case f[0] == "frontend" || f[0] == "backend" || f[0] == "listen":
			if current = sections[name]; current == nil && name != "" {
				current = &haproxySection{kind: f[0], servers: make(map[string]bool)}
				sections[name] = current
			}
		case f[0] == "server" && current != nil && name != "":
			current.servers[name] = true
		case !indented(line) && isSection(f[0]):
			current = nil
		}
	}
}

func unquote(f []string, i int) string {
	if i >= len(f) {
		return ""
	}
	return strings.Trim(f[i], `"'`)
}

func indented(line []byte) bool { return len(line) > 0 && (line[0] == ' ' || line[0] == '\t') }

func isSection(word string) bool {
	switch word {
	case "global", "defaults", "peers", "resolvers", "userlist", "cache", "program", "ring", "mailers", "http-errors":
		return true
	}
	return false
}
