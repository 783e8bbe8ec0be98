package haproxyctl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Server is one line of "show servers state".
type Server struct {
	Backend, Name, Addr string
	Oper                int // 0 stopped, 1 starting, 2 running, 3 stopping softly
	Admin               int // bits, see Maintenance and Drained
	Weight, Initial     int // as it is now, and as configured
}

// Bits of Admin that "set server ... state maint" and "... drain" set.
const (
	ForcedMaintenance = 1
	ForcedDrain       = 8
)

// Drained says that the server was drained over the runtime API.
func (s Server) Drained() bool { return s.Admin&ForcedDrain != 0 }

// Maintenance says that the server was taken out over the runtime API.
func (s Server) Maintenance() bool { return s.Admin&ForcedMaintenance != 0 }

// ErrNotAdmin means that the socket does not allow changes.
var ErrNotAdmin = errors.New("the stats socket is not of level admin")

// maxServers bounds what one backend may list.
const maxServers = 100_000

// CheckAdmin returns ErrNotAdmin unless the session may change servers.
func (c *Conn) CheckAdmin() error {
	level, err := c.command("show cli level")
	if err != nil {
		return err
	}
	if level != "admin" {
		return fmt.Errorf("%w, but %.40q", ErrNotAdmin, level)
	}
	return nil
}

// Servers lists the servers of a backend.
func (c *Conn) Servers(backend string) ([]Server, error) {
	if err := checkName(backend); err != nil {
		return nil, err
	}
	text, err := c.command("show servers state " + backend)
	if err != nil {
		return nil, err
	}
	return ParseServers(strings.NewReader(text))
}

// SetState sets a server's state: "maint", "drain" or "ready".
func (c *Conn) SetState(backend, server, state string) error {
	return c.set(backend, server, "state", state)
}

// SetWeight sets a server's weight. Its configured one is given as a share,
// which is all that static algorithms take; so is 0.
func (c *Conn) SetWeight(s Server, weight int) error {
	text := strconv.Itoa(weight)
	switch weight {
	case 0:
		text = "0%"
	case s.Initial:
		text = "100%"
	}
	return c.set(s.Backend, s.Name, "weight", text)
}

func (c *Conn) set(backend, server, what, value string) error {
	for _, name := range []string{backend, server, strings.TrimSuffix(value, "%")} {
		if err := checkName(name); err != nil {
			return err
		}
	}
	answer, err := c.command(fmt.Sprintf("set server %s/%s %s %s", backend, server, what, value))
	if err == nil && answer != "" {
		err = fmt.Errorf("runtime API: %.200q", answer)
	}
	return err
}

// checkName refuses what is no name of HAProxy: names come from the memory of
// the process, and one with a line break or a semicolon would be a second
// command.
func checkName(name string) error {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:", r) {
			return fmt.Errorf("name %.80q: not a name of HAProxy", name)
		}
	}
	if name == "" || len(name) > 256 {
		return fmt.Errorf("name of %d bytes: not a name of HAProxy", len(name))
	}
	return nil
}

// ParseServers reads the answer to "show servers state": a version, a line with
// the names of the columns, one line a server.
func ParseServers(r io.Reader) ([]Server, error) {
	var columns []string
	var list []Server
	lines := bufio.NewScanner(io.LimitReader(r, maxAnswer))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if names, ok := strings.CutPrefix(line, "# "); ok {
			columns = strings.Fields(names)
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue // the version
		}
		s, err := parseServer(columns, fields)
		if err != nil {
			return nil, err
		}
		if list = append(list, s); len(list) > maxServers {
			return nil, fmt.Errorf("servers state: over %d servers", maxServers)
		}
	}
	if columns == nil && lines.Err() == nil {
		return nil, errors.New("servers state: no line names its columns")
	}
	return list, lines.Err()
}

func parseServer(columns, fields []string) (Server, error) {
	get := func(name string) string {
		if i := slices.Index(columns, name); i >= 0 && i < len(fields) {
			return fields[i]
		}
		return ""
	}
	s := Server{Backend: get("be_name"), Name: get("srv_name"), Addr: get("srv_addr")}
	var err1, err2, err3, err4 error
	s.Oper, err1 = strconv.Atoi(get("srv_op_state"))
	s.Admin, err2 = strconv.Atoi(get("srv_admin_state"))
	s.Weight, err3 = strconv.Atoi(get("srv_uweight"))
	s.Initial, err4 = strconv.Atoi(get("srv_iweight"))
	if s.Backend == "" || s.Name == "" || errors.Join(err1, err2, err3, err4) != nil {
		return s, fmt.Errorf("servers state: line of %d words: cut, or of an unknown form", len(fields))
	}
	return s, nil
}
