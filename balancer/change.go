package balancer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// ErrNoChange is returned where a worker has not told what a version changed.
var ErrNoChange = errors.New("change not told")

// Change is what a version of an upstream changed against the one before.
type Change struct {
	Upstream string
	From, To uint64 // versions; From is 0 for the first
	Digest   string
	By       string    // who published it
	At       time.Time // when, to the second
	Lines    []string  // such as `10.0.0.7:80 weight 5 -> "0"`; at least one
}

// changeArea returns the address, in the worker's memory, of the area that
// belongs to a crumb slot; 0 where there is none.
func (f Files) changeArea(slot uint64) uint64 {
	first := f.Crumbs.Start + crumbHeader
	if f.Changes.Start == 0 || slot < first || slot >= first+crumbSlots*CrumbSize {
		return 0
	}
	return f.Changes.Start + changesHeader + (slot-first)/CrumbSize*changeArea
}

// ReadChange returns what a version changed, as the worker with this crumb
// slot told it when it took the version into use. Where it told nothing, or
// long ago, the error is ErrNoChange. The texts can be printed.
func (f Files) ReadChange(mem procmem.Memory, slot uint64, upstream string, version uint64) (Change, error) {
	at := f.changeArea(slot)
	if at == 0 {
		return Change{}, ErrNoChange
	}
	var area [changeArea]byte
	if err := mem.ReadMemory(at, area[:]); err != nil {
		return Change{}, fmt.Errorf("changes at %#x: %v", at, err)
	}
	for i := 0; i < changeArea; i += changeSlot {
		if c, ok := parseChange(area[i : i+changeSlot]); ok && c.Upstream == upstream && c.To == version {
			return c, nil
		}
	}
	return Change{}, fmt.Errorf("upstream %.64q version %d: %w", upstream, version, ErrNoChange)
}

// parseChange reads one slot, of a process that is not trusted.
func parseChange(b []byte) (Change, bool) {
	size := binary.LittleEndian.Uint32(b[changeSizeAt:])
	if size == 0 || size > changeText {
		return Change{}, false
	}
	c := Change{
		To: binary.LittleEndian.Uint64(b[changeVersionAt:]), From: binary.LittleEndian.Uint64(b[changeFromAt:]),
		Digest:   string(bytes.TrimRight(b[changeDigestAt:changeUpstreamAt], "\x00")),
		Upstream: text(b[changeUpstreamAt:changeByAt]), By: text(b[changeByAt:changeTextAt]),
		// Within the years that time.Time can print.
		At: time.Unix(int64(binary.LittleEndian.Uint64(b[changeAtAt:])%(1<<37)), 0),
	}
	for line := range strings.Lines(string(b[changeTextAt : changeTextAt+size])) {
		c.Lines = append(c.Lines, text([]byte(strings.TrimSuffix(line, "\n"))))
	}
	return c, plainName(c.Upstream) && hexDigits(c.Digest)
}
