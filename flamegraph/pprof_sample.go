package flamegraph

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

var errMalformed = errors.New("malformed message")

// fields calls do for each field of a message: with the number of a varint,
// or with the bytes of a message. Other wire types are of no use here.
func fields(message []byte, do func(number protowire.Number, v uint64, b []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errMalformed
		}
		var v uint64
		var b []byte
		switch message = message[n:]; kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(message)
			if b == nil {
				b = []byte{}
			}
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
			number = 0
		}
		if n < 0 {
			return errMalformed
		}
		if message = message[n:]; number == 0 {
			continue
		}
		if err := do(number, v, b); err != nil {
			return err
		}
	}
	return nil
}

// numbers calls do for one number, or for each of a packed field.
func numbers(v uint64, packed []byte, do func(uint64)) error {
	if packed == nil {
		do(v)
		return nil
	}
	for len(packed) > 0 {
		v, n := protowire.ConsumeVarint(packed)
		if n < 0 {
			return errMalformed
		}
		do(v)
		packed = packed[n:]
	}
	return nil
}

// sample takes one sample: its locations (field 1, leaf first), its values (2)
// and its labels (3).
func (s *pprofSamples) sample(message []byte) error {
	s.run = s.run[:0]
	var labels []byte
	first := len(s.values)
	err := fields(message, func(number protowire.Number, v uint64, b []byte) error {
		switch number {
		case 1:
			return numbers(v, b, func(id uint64) { s.run = append(s.run, s.number(id)) })
		case 2:
			return numbers(v, b, func(v uint64) { s.values = append(s.values, int64(v)) })
		case 3:
			labels = protowire.AppendBytes(labels, b)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n := len(s.values) - first; len(s.stacks) == 0 {
		s.columns = n
	} else if n != s.columns {
		return fmt.Errorf("%d values, others have %d", n, s.columns)
	}
	return s.keep(labels)
}

// keep stores the stack in s.run.
func (s *pprofSamples) keep(labels []byte) error {
	depth := min(len(s.run), maxDepth)
	at, ok := s.words.put(s.run[:depth])
	if !ok || len(s.stacks) == math.MaxInt32 {
		return errWords
	}
	set, ok := s.sets[string(labels)]
	if !ok {
		set = uint32(len(s.labels))
		s.labels = append(s.labels, string(labels))
		s.sets[s.labels[set]] = set
	}
	s.stacks = append(s.stacks, pprofStack{at: at, set: set, depth: uint16(depth), cut: depth < len(s.run)})
	return nil
}

func (s *pprofSamples) number(id uint64) uint32 {
	n, ok := s.numbers[id]
	if !ok {
		n = uint32(len(s.ids))
		s.numbers[id] = n
		s.ids = append(s.ids, id)
	}
	return n
}

// give hands the samples to the reader of parsed profiles, frames for
// locations. It forgets them as it goes.
func (s *pprofSamples) give(r *pprofReader) error {
	frames := make([][]uint32, len(s.locations))
	for n, loc := range s.locations {
		frames[n] = r.location(loc)
	}
	sets, err := s.labelSets(r.b)
	if err != nil {
		return err
	}
	r.b.p.stacks = make([]record, 0, len(s.stacks))
	var ids []uint32
	for i, stack := range s.stacks {
		ids = ids[:0]
		if stack.cut { // so that the profile's reader cuts it as well
			ids = append(ids, make([]uint32, 1)...)
		}
		for _, n := range slices.Backward(s.words.get(stack.at, stack.depth)) {
			ids = append(ids, frames[n]...)
		}
		if err := r.b.add(ids, sets[stack.set], s.values[i*s.columns+r.column], false); err != nil {
			return err
		}
		for c := range stack.at >> chunkBits {
			s.words.chunks[c] = nil
		}
	}
	return nil
}

// labelSets makes the label sets of the builder.
func (s *pprofSamples) labelSets(b *builder) ([]uint32, error) {
	texts, err := s.texts()
	if err != nil {
		return nil, err
	}
	sets := make([]uint32, len(s.labels))
	for i, messages := range s.labels {
		var labels []Label
		for rest := []byte(messages); len(rest) > 0; {
			message, n := protowire.ConsumeBytes(rest)
			l, ok, err := readLabel(message, texts)
			if err != nil {
				return nil, err
			}
			if ok {
				labels = append(labels, l)
			}
			rest = rest[n:]
		}
		sets[i] = b.set(labels)
	}
	return sets, nil
}

// texts returns the string table, or nothing if no sample has labels.
func (s *pprofSamples) texts() (texts []string, err error) {
	const stringTable = 6
	if len(s.labels) == 0 || len(s.labels) == 1 && s.labels[0] == "" {
		return nil, nil
	}
	err = fields(s.rest.Bytes(), func(number protowire.Number, _ uint64, b []byte) error {
		if number == stringTable {
			texts = append(texts, string(b))
		}
		return nil
	})
	return texts, err
}

// readLabel reads a label: key (1), and text (2) or number (3) with its unit
// (4). One without either, or that marks a base, is none.
func readLabel(message []byte, texts []string) (l Label, ok bool, err error) {
	var field [5]uint64
	err = fields(message, func(number protowire.Number, v uint64, b []byte) error {
		if int(number) < len(field) && b == nil {
			field[number] = v
		}
		return nil
	})
	if err != nil {
		return l, false, err
	}
	for _, n := range []uint64{field[1], field[2], field[4]} {
		if n >= uint64(len(texts)) {
			return l, false, fmt.Errorf("label: text %d of %d", n, len(texts))
		}
	}
	l.Key = clean(texts[field[1]])
	switch {
	case texts[field[1]] == baseLabel:
		return l, false, nil
	case field[2] != 0:
		l.Value = clean(texts[field[2]])
	case field[3] != 0 || field[4] != 0:
		l.Value = strconv.FormatInt(int64(field[3]), 10)
	default:
		return l, false, nil
	}
	return l, true, nil
}
