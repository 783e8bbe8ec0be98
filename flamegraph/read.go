package flamegraph

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/pprof/profile"
)

// maxInput bounds what a compressed or pprof input may hold, in bytes.
// Folded text is read line by line and has no such bound.
const maxInput = 2 << 30

// Load reads a profile from a file: pprof, gzipped or not, or folded text.
// Errors begin with the path.
func Load(path string) (*Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return Read(f, filepath.Base(path))
}

// Read reads a profile in any of the formats of Load. The name is used in
// titles and errors.
func Read(r io.Reader, name string) (*Profile, error) {
	in, text, closer, err := open(r, name)
	if err != nil {
		return nil, err
	}
	defer closer()
	if text {
		return readFolded(in, name)
	}
	return readPprof(bufio.NewReaderSize(&bounded{r: in, left: maxInput}, 1<<16), name)
}

// open unpacks the input if it is gzipped and tells whether it is text. The
// closer is never nil unless there is an error.
func open(r io.Reader, name string) (in *bufio.Reader, text bool, closer func(), err error) {
	in, closer = bufio.NewReaderSize(r, 1<<18), func() {}
	head, _ := in.Peek(2)
	if len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
		zr, err := gzip.NewReader(in)
		if err != nil {
			return nil, false, nil, fmt.Errorf("%s: gzip: %w", name, err)
		}
		closer = func() { _ = zr.Close() }
		in = bufio.NewReaderSize(&bounded{r: zr, left: maxInput}, 1<<18)
	}
	head, err = in.Peek(3)
	if len(head) == 0 && err != nil && !errors.Is(err, io.EOF) {
		closer()
		return nil, false, nil, fmt.Errorf("%s: %w", name, err)
	}
	return in, looksLikeText(head), closer, nil
}

// looksLikeText tells folded text from a protocol buffer, which begins with a
// field's tag. That of the first field, sample_type, is a line break too, but
// then a short length and a tag within it follow.
func looksLikeText(head []byte) bool {
	if len(head) < 2 {
		return true
	}
	switch first := head[0]; first {
	case '\n':
		return head[1] >= ' ' || head[1] != 0 && (len(head) < 3 || head[2] != 0x08 && head[2] != 0x10)
	case '2': // string_table, whose first string is empty
		return head[1] != 0
	default:
		return first >= ' ' || first == '\t' || first == '\r'
	}
}

func parsePprof(r io.Reader, name string) (*profile.Profile, error) {
	data, err := io.ReadAll(&bounded{r: r, left: maxInput})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p, err := profile.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: neither pprof nor folded text: %w", name, err)
	}
	return p, nil
}

// bounded fails, where io.LimitReader would end quietly.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("input: more than %d bytes", int64(maxInput))
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
