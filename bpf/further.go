package bpf

import (
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"
)

// assembler puts the windows of a sample that came ahead of it, in records of
// their own, into the sample.
type assembler struct {
	ahead map[uint32]*furtherWindows // by thread
}

// furtherWindows are those of one sample.
type furtherWindows struct {
	when uint64
	list []Window
}

// maxAhead bounds the threads of which windows wait for their sample. Those
// whose sample was lost wait until their thread's next one.
const maxAhead = 4096

// take takes in one record of the ring, which may be reused afterwards. It
// says whether the record was a sample.
func (a *assembler) take(raw []byte) (s Sample, whole bool, err error) {
	if len(raw) < 4 {
		return Sample{}, false, fmt.Errorf("record of the sampler: %d bytes, which is too short", len(raw))
	}
	switch kind := samplerKind(binary.NativeEndian.Uint32(raw)); kind {
	case samplerKindKIND_SAMPLE:
		s, err = decode(raw)
		s.Further = a.of(s)
		return s, err == nil, err
	case samplerKindKIND_FURTHER:
		return Sample{}, false, a.keep(raw)
	default:
		return Sample{}, false, fmt.Errorf("record of the sampler: kind %d is not known", kind)
	}
}

// of returns what came ahead of a sample.
func (a *assembler) of(s Sample) []Window {
	ahead := a.ahead[uint32(s.TID)]
	if ahead == nil {
		return nil
	}
	delete(a.ahead, uint32(s.TID))
	if time.Duration(ahead.when) != s.When {
		return nil // of a sample that was lost
	}
	return ahead.list
}

func (a *assembler) keep(raw []byte) error {
	var head struct {
		kind, tid       uint32
		when, addr, len uint64
		_               [2]uint64
	}
	if len(raw) < furtherAt {
		return fmt.Errorf("record of the sampler: %d bytes, want at least %d of a window", len(raw), furtherAt)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&head)), furtherAt), raw)
	if head.len > uint64(len(raw)-furtherAt) {
		return fmt.Errorf("record of the sampler: window of %d bytes in a record of %d", head.len, len(raw))
	}
	ahead := a.ahead[head.tid]
	if ahead == nil || ahead.when != head.when {
		ahead = &furtherWindows{when: head.when}
		if len(a.ahead) >= maxAhead || a.ahead == nil {
			a.ahead = map[uint32]*furtherWindows{}
		}
		a.ahead[head.tid] = ahead
	}
	data := append([]byte(nil), raw[furtherAt:furtherAt+int(head.len)]...)
	ahead.list = append(ahead.list, Window{head.addr, data})
	return nil
}
