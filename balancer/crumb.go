package balancer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrCrumb marks bytes that are not a crumb.
var ErrCrumb = errors.New("not a crumb")

// Crumb is what a worker was about to do when its slot was read.
type Crumb struct {
	PID      int    // as the worker sees itself, in its own pid namespace
	Active   bool   // a picker is being built or run
	Phase    string // "idle", "build" or "pick"
	Sequence uint32 // counts builds and picks; wraps
	Upstream string
	Version  uint64
	Digest   string // of the version's peers
	Picker   string // kind of picker
}

// Phases of a crumb.
const (
	PhaseIdle  = "idle"
	PhaseBuild = "build"
	PhasePick  = "pick"
)

// ParseCrumb reads one slot. The bytes come from a process that is not
// trusted: they give either an error or texts that can be printed.
func ParseCrumb(slot []byte) (Crumb, error) {
	if len(slot) < CrumbSize {
		return Crumb{}, fmt.Errorf("slot of %d bytes: %w", len(slot), ErrCrumb)
	}
	c := Crumb{
		PID:      int(int32(binary.LittleEndian.Uint32(slot[slotPIDAt:]))),
		Sequence: binary.LittleEndian.Uint32(slot[slotSequenceAt:]),
		Version:  binary.LittleEndian.Uint64(slot[slotVersionAt:]),
		Digest:   string(bytes.TrimRight(slot[slotDigestAt:slotUpstreamAt], "\x00")),
		Upstream: text(slot[slotUpstreamAt:slotPickerAt]),
		Picker:   text(slot[slotPickerAt:CrumbSize]),
	}
	if c.PID <= 0 {
		return Crumb{}, fmt.Errorf("slot of pid %d: %w", c.PID, ErrCrumb)
	}
	switch phase := binary.LittleEndian.Uint32(slot[slotPhaseAt:]); phase {
	case phaseIdle:
		c.Phase = PhaseIdle
	case phaseBuild:
		c.Phase, c.Active = PhaseBuild, true
	case phasePick:
		c.Phase, c.Active = PhasePick, true
	default:
		return Crumb{}, fmt.Errorf("slot of pid %d: phase %d: %w", c.PID, phase, ErrCrumb)
	}
	if c.Active && (!plainName(c.Upstream) || !hexDigits(c.Digest)) {
		return Crumb{}, fmt.Errorf("slot of pid %d: upstream %.20q: %w", c.PID, c.Upstream, ErrCrumb)
	}
	if !hexDigits(c.Digest) {
		c.Digest = ""
	}
	return c, nil
}

// plainName says whether the library would accept the name of an upstream.
func plainName(s string) bool {
	if s == "" || len(s) > nameMax {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && bytes.IndexByte([]byte("._:@-"), c) < 0 {
			return false
		}
	}
	return true
}

func hexDigits(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
