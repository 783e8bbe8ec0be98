package drill

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// call is one request over a connection of its own. The connection outlives an
// answer that does not come, until close.
type call struct {
	conn net.Conn
	late bool // the patience ran out
}

// wire returns the bytes of a request as they go over the connection.
func wire(r *Request, repeat int) []byte {
	method := r.Method
	if method == "" {
		method = "GET"
	}
	body := bytes.Repeat([]byte(r.Body), max(1, repeat))
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", method, r.Path)
	if !hasHeader(r, "host") {
		b.WriteString("Host: case.test\r\n")
	}
	if !hasHeader(r, "connection") {
		b.WriteString("Connection: close\r\n")
	}
	names := make([]string, 0, len(r.Headers))
	for k := range r.Headers {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		fmt.Fprintf(&b, "%s: %s\r\n", k, r.Headers[k])
	}
	needsLength := len(body) > 0 || method == "PUT" || method == "POST"
	if needsLength && !hasHeader(r, "content-length") && !hasHeader(r, "transfer-encoding") {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

func hasHeader(r *Request, name string) bool {
	for k := range r.Headers {
		if strings.EqualFold(k, name) {
			return true
		}
	}
	return false
}

// send writes a request on a fresh connection and waits for the head of its
// answer. It returns the status, 0 where none came in time. The context ends
// the wait early.
func (c *call) send(ctx context.Context, port int, data []byte, patience time.Duration) int {
	end := time.Now().Add(patience)
	defer func() { c.late = !time.Now().Before(end) }()
	d := net.Dialer{Deadline: end}
	conn, err := d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return 0
	}
	c.conn = conn
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	_ = conn.SetDeadline(end)
	// The answer to a request that was refused half way is still worth reading.
	if _, err := conn.Write(data); errors.Is(err, os.ErrDeadlineExceeded) {
		return 0
	}
	return readStatus(conn)
}

func (c *call) close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// readStatus reads up to the end of the head of an answer.
func readStatus(conn net.Conn) int {
	r := bufio.NewReaderSize(conn, 16<<10)
	first, err := r.ReadSlice('\n')
	if err != nil {
		return 0
	}
	f := bytes.Fields(first)
	if len(f) < 2 || !bytes.HasPrefix(f[0], []byte("HTTP/1.")) {
		return 0
	}
	status, err := strconv.Atoi(string(f[1]))
	if err != nil {
		return 0
	}
	for range 200 { // more lines than any head has
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			return status
		}
	}
	return 0
}

// ask sends one request and closes its connection.
func ask(ctx context.Context, port int, r *Request, patience time.Duration) int {
	var c call
	defer c.close()
	return c.send(ctx, port, wire(r, 1), patience)
}
