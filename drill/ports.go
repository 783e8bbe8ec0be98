package drill

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Below the range from which Linux takes ports for outgoing connections, so
// that the drill's own probes never sit on a port of the proxy.
const (
	portLow  = 20000
	portHigh = 31990
	portRow  = 10
)

// row is ten ports in a row that belong to one drill until it is closed, also
// while nobody listens on them: other drills on this host see it held.
type row struct {
	first int
	held  net.Listener
}

// freePorts returns ten ports in a row that nobody listens on and no other
// drill holds. The caller closes the row.
func freePorts() (*row, error) {
	for range 200 {
		r, err := holdRow(portLow + rand.IntN((portHigh-portLow)/portRow)*portRow)
		if err != nil {
			continue
		}
		if rowIsFree(r.first) {
			return r, nil
		}
		r.close()
	}
	return nil, errors.New("free ports: no ten in a row between 20000 and 32000 on 127.0.0.1")
}

// holdRow takes the row that begins at first, or fails if a drill has it. The
// name of an abstract socket is known in the same network namespace as the
// ports, leaves no file, and is free again when its process dies.
func holdRow(first int) (*row, error) {
	l, err := net.Listen("unix", fmt.Sprintf("@spinguard-drill-ports-%d", first))
	if err != nil {
		return nil, err
	}
	return &row{first: first, held: l}, nil
}

func (r *row) close() { _ = r.held.Close() }

func rowIsFree(first int) bool {
	for i := range portRow {
		addr := fmt.Sprintf("127.0.0.1:%d", first+i)
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return false
		}
		_ = l.Close()
		u, err := net.ListenPacket("udp", addr)
		if err != nil {
			return false
		}
		_ = u.Close()
	}
	return true
}
