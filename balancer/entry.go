package balancer

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// Kind says what an entry puts in quarantine.
type Kind uint32

// A version of an upstream, one peer of it, or a route.
const (
	KindVersion Kind = 1
	KindPeer    Kind = 2
	KindRoute   Kind = 3
)

// String returns "version", "peer" or "route".
func (k Kind) String() string {
	switch k {
	case KindVersion:
		return "version"
	case KindPeer:
		return "peer"
	case KindRoute:
		return "route"
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

// Entry is one quarantine. Times have a resolution of a millisecond.
type Entry struct {
	ID       string // unique, at most 39 bytes; Add makes one if it is empty
	Origin   string // node and agent that decided, at most 55 bytes
	Kind     Kind
	Upstream string // at most 63 bytes
	Version  uint64 // for KindVersion
	Digest   string // of the version's peers; if set, it decides alone which version is meant
	Subject  string // address of the peer, or the route; at most 95 bytes
	Since    time.Time
	Until    time.Time // the quarantine ends by itself at this time
	Reason   string    // for people; cut at 63 bytes
}

// check refuses what would not fit, so that nothing is cut silently but the
// reason.
func (e Entry) check() error {
	if e.Kind < KindVersion || e.Kind > KindRoute {
		return fmt.Errorf("quarantine: kind %d is none of version, peer, route", e.Kind)
	}
	if e.Kind == KindVersion && e.Version == 0 && e.Digest == "" {
		return fmt.Errorf("quarantine of upstream %q: neither version nor digest", e.Upstream)
	}
	if e.Kind != KindVersion && e.Subject == "" {
		return fmt.Errorf("quarantine of upstream %q: no %s named", e.Upstream, e.Kind)
	}
	if e.Upstream == "" && e.Kind != KindRoute {
		return fmt.Errorf("quarantine %q: no upstream named", e.ID)
	}
	if e.Until.UnixMilli() <= 0 {
		return fmt.Errorf("quarantine of upstream %q: no end", e.Upstream)
	}
	return e.checkTexts()
}

func (e Entry) checkTexts() error {
	texts := []struct {
		name, value string
		size        int
	}{
		{"id", e.ID, entryOriginAt - entryIDAt},
		{"origin", e.Origin, entryReasonAt - entryOriginAt},
		{"upstream", e.Upstream, entrySubjectAt - entryUpstreamAt},
		{"digest", e.Digest, entryUpstreamAt - entryDigestAt},
		{"subject", e.Subject, entryIDAt - entrySubjectAt},
	}
	for _, t := range texts {
		if len(t.value) >= t.size || strings.IndexByte(t.value, 0) >= 0 {
			return fmt.Errorf("quarantine: %s %.20q: %d bytes, at most %d without zero bytes fit",
				t.name, t.value, len(t.value), t.size-1)
		}
	}
	return nil
}

func (e Entry) encode(b []byte) {
	clear(b[:entrySize])
	binary.LittleEndian.PutUint32(b[entryKindAt:], uint32(e.Kind))
	binary.LittleEndian.PutUint64(b[entryVersionAt:], e.Version)
	binary.LittleEndian.PutUint64(b[entryUntilAt:], uint64(e.Until.UnixMilli()))
	binary.LittleEndian.PutUint64(b[entrySinceAt:], uint64(max(0, e.Since.UnixMilli())))
	putText(b[entryDigestAt:entryUpstreamAt], e.Digest)
	putText(b[entryUpstreamAt:entrySubjectAt], e.Upstream)
	putText(b[entrySubjectAt:entryIDAt], e.Subject)
	putText(b[entryIDAt:entryOriginAt], e.ID)
	putText(b[entryOriginAt:entryReasonAt], e.Origin)
	putText(b[entryReasonAt:entrySize], e.Reason)
}

func decodeEntry(b []byte) Entry {
	milli := func(at int) time.Time {
		return time.UnixMilli(int64(min(binary.LittleEndian.Uint64(b[at:]), maxMilli)))
	}
	return Entry{
		Kind:     Kind(binary.LittleEndian.Uint32(b[entryKindAt:])),
		Version:  binary.LittleEndian.Uint64(b[entryVersionAt:]),
		Until:    milli(entryUntilAt),
		Since:    milli(entrySinceAt),
		Digest:   text(b[entryDigestAt:entryUpstreamAt]),
		Upstream: text(b[entryUpstreamAt:entrySubjectAt]),
		Subject:  text(b[entrySubjectAt:entryIDAt]),
		ID:       text(b[entryIDAt:entryOriginAt]),
		Origin:   text(b[entryOriginAt:entryReasonAt]),
		Reason:   text(b[entryReasonAt:entrySize]),
	}
}

// maxMilli is the end of the year 9999, the last that time can print as JSON.
const maxMilli = 253402300799999

func putText(field []byte, s string) {
	copy(field[:len(field)-1], strings.ReplaceAll(s, "\x00", "?"))
}

// text reads a field up to its first zero byte; what cannot be printed
// becomes "?".
func text(field []byte) string {
	s, _, _ := strings.Cut(string(field), "\x00")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return '?'
		}
		return r
	}, s)
}
