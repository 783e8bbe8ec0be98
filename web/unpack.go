package web

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
)

// unpack reads a profile, gzipped or not, up to a bound: a small file can hold
// a very long run of zeros.
func unpack(r io.Reader) ([]byte, error) {
	b := bufio.NewReader(r)
	if magic, err := b.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		return readBounded(z)
	}
	return readBounded(b)
}

func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxProfile+1))
	if err == nil && len(data) > maxProfile {
		err = fmt.Errorf("profile of over %d bytes", maxProfile)
	}
	return data, err
}
