package flamegraph

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"
)

// maxLine bounds a line of folded text, in bytes.
const maxLine = 64 << 20

// foldedReader parses folded text: "root;caller;leaf 42" a line. A line of
// three columns, "stack old new", is a difference.
type foldedReader struct {
	b     *builder
	names map[string]uint32 // frame text as written
	ids   []uint32
	line  int
}

func readFolded(in *bufio.Reader, name string) (*Profile, error) {
	f := foldedReader{b: newBuilder(name), names: make(map[string]uint32)}
	f.b.p.Type, f.b.p.Unit = "samples", "count"
	var comments []string
	for {
		line, err := f.next(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(line) > 0 && line[0] == '#' {
			comments = append(comments, string(cutLine(line[1:])))
			continue
		}
		if err := f.stack(line); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, f.line, err)
		}
	}
	f.b.p.Account = readAccount(comments)
	f.b.p.takeUnit()
	return f.b.finish(), nil
}

// next returns the next line without its end. It is valid until the next call.
func (f *foldedReader) next(in *bufio.Reader) ([]byte, error) {
	f.line++
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = f.long(in, line)
	}
	if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// long puts together a line that is longer than the reader's buffer.
func (f *foldedReader) long(in *bufio.Reader, head []byte) ([]byte, error) {
	line := bytes.Clone(head)
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("%s: line %d: longer than %d bytes", f.b.p.Name, f.line, maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (f *foldedReader) stack(line []byte) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	rest, value, ok := cutNumber(line)
	switch {
	case ok:
	case !utf8.Valid(line):
		return errors.New("this is no text: neither pprof nor folded stacks")
	default:
		return fmt.Errorf("%q: not a stack, a space and a whole number", cutLine(line))
	}
	f.split(rest)
	if stack, old, two := cutNumber(rest); two {
		f.split(stack)
		if err := f.b.add(f.ids, 0, old, true); err != nil {
			return err
		}
		f.b.p.diff = true
	}
	return f.b.add(f.ids, 0, value, false)
}

// split looks up the frames of a stack.
func (f *foldedReader) split(stack []byte) {
	f.ids = f.ids[:0]
	for {
		i := bytes.IndexByte(stack, ';')
		part := stack
		if i >= 0 {
			part = stack[:i]
		}
		id, ok := f.names[string(part)]
		if !ok {
			id = f.b.frame(frameOfText(string(part)))
			if len(part) <= maxText { // keeps the table in bounds
				f.names[string(part)] = id
			}
		}
		f.ids = append(f.ids, id)
		if i < 0 {
			return
		}
		stack = stack[i+1:]
	}
}

// cutNumber splits a line at its last space if a number follows it.
func cutNumber(line []byte) (rest []byte, n int64, ok bool) {
	i := bytes.LastIndexByte(line, ' ')
	if i < 1 {
		return nil, 0, false
	}
	rest = bytes.TrimRight(line[:i], " ")
	if n, err := strconv.ParseInt(string(line[i+1:]), 10, 64); err == nil {
		return rest, n, true
	}
	// Some tools write weights with a fraction; "inf" and "nan" are no weights.
	x, err := strconv.ParseFloat(string(line[i+1:]), 64)
	if err != nil || !(math.Abs(x) < maxSum) {
		return nil, 0, false
	}
	return rest, int64(math.Round(x)), true
}

func cutLine(line []byte) []byte { return line[:min(len(line), 80)] }
