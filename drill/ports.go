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
)

// freePorts returns the first of ten ports in a row that nobody listens on.
func freePorts() (int, error) {
	for range 200 {
		p := portLow + rand.IntN((portHigh-portLow)/10)*10
		if rowIsFree(p) {
			return p, nil
		}
	}
	return 0, errors.New("free ports: no ten in a row between 20000 and 32000 on 127.0.0.1")
}

func rowIsFree(first int) bool {
	for i := range 10 {
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
