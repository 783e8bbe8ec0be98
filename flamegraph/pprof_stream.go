package flamegraph

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/google/pprof/profile"
	"google.golang.org/protobuf/encoding/protowire"
)

// sampleField is the number of the samples in pprof's message.
const sampleField = 2

// maxSample bounds the message of one sample, in bytes.
const maxSample = 64 << 20

// readPprof reads a pprof profile without holding it whole: a parsed sample
// takes many times what a picture needs of it. So the samples are taken from
// the stream one by one, and the library parses what is left, which is small:
// locations, functions and strings. These come last, so stacks are collected
// by location first.
func readPprof(in *bufio.Reader, name string) (*Profile, error) {
	s := &pprofSamples{numbers: make(map[uint64]uint32), sets: make(map[string]uint32)}
	p, err := s.read(in, name)
	if err != nil {
		return nil, fmt.Errorf("%s: neither pprof nor folded text: %w", name, err)
	}
	r, err := newPprofReader(p, name, "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := s.give(r); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r.b.finish(), nil
}

// pprofSamples holds the samples of a profile by the numbers of their
// locations and label sets.
type pprofSamples struct {
	numbers map[uint64]uint32 // by location id
	ids     []uint64          // the other way
	words   arena             // stacks of location numbers, leaf first
	stacks  []pprofStack
	columns int     // values of each sample
	values  []int64 // columns for each stack
	sets    map[string]uint32
	labels  []string // label messages of a set, one behind the other

	rest      bytes.Buffer // the profile without its samples
	locations []*profile.Location
	run       []uint32
	message   []byte
}

type pprofStack struct {
	at, set uint32
	depth   uint16
	cut     bool // frames at the root are left out
}

// read takes the samples out of the stream and parses what is left.
func (s *pprofSamples) read(in *bufio.Reader, name string) (*profile.Profile, error) {
	for {
		tag, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = s.field(in, tag)
		}
		if err != nil {
			return nil, err
		}
	}
	p, err := profile.ParseUncompressed(s.rest.Bytes())
	if err == nil {
		err = p.CheckValid()
	}
	if err == nil {
		err = s.resolve(p)
	}
	return p, err
}

// field reads one field: a sample is taken, anything else kept as it is.
func (s *pprofSamples) field(in *bufio.Reader, tag uint64) error {
	number, kind := tag>>3, protowire.Type(tag&7)
	if number == sampleField && kind == protowire.BytesType {
		return s.sampleMessage(in)
	}
	s.rest.Write(protowire.AppendVarint(s.rest.AvailableBuffer(), tag))
	size := uint64(0)
	switch kind {
	case protowire.Fixed32Type:
		size = 4
	case protowire.Fixed64Type:
		size = 8
	case protowire.VarintType, protowire.BytesType:
		v, err := binary.ReadUvarint(in)
		if err != nil {
			return unexpected(err)
		}
		s.rest.Write(protowire.AppendVarint(s.rest.AvailableBuffer(), v))
		if kind == protowire.BytesType {
			size = v
		}
	default:
		return fmt.Errorf("field %d: unknown wire type %d", number, kind)
	}
	if size > maxInput {
		return fmt.Errorf("field %d: %d bytes", number, size)
	}
	_, err := io.CopyN(&s.rest, in, int64(size))
	return unexpected(err)
}

// sampleMessage reads the message of one sample and takes it.
func (s *pprofSamples) sampleMessage(in *bufio.Reader) error {
	size, err := binary.ReadUvarint(in)
	if err != nil {
		return unexpected(err)
	}
	if size > maxSample {
		return fmt.Errorf("sample of %d bytes", size)
	}
	if uint64(cap(s.message)) < size {
		s.message = make([]byte, size+size/2)
	}
	message := s.message[:size]
	if _, err := io.ReadFull(in, message); err != nil {
		return unexpected(err)
	}
	if err := s.sample(message); err != nil {
		return fmt.Errorf("sample %d: %w", len(s.stacks)+1, err)
	}
	return nil
}

// resolve looks up the locations that the samples name.
func (s *pprofSamples) resolve(p *profile.Profile) error {
	if len(s.stacks) > 0 && s.columns != len(p.SampleType) {
		return fmt.Errorf("samples have %d values, sample types are %d", s.columns, len(p.SampleType))
	}
	byID := make(map[uint64]*profile.Location, len(p.Location))
	for _, l := range p.Location {
		byID[l.ID] = l
	}
	s.locations = make([]*profile.Location, len(s.ids))
	for n, id := range s.ids {
		if s.locations[n] = byID[id]; s.locations[n] == nil {
			return fmt.Errorf("location %d: named by a sample, but not in the profile", id)
		}
	}
	return nil
}

// unexpected is the error of a read within a field.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
