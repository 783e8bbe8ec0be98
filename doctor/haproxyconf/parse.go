// Package haproxyconf reads a HAProxy configuration, as far as checks of
// single settings need it. It is bounded in bytes and lines, and evaluates
// neither conditions nor variables.
package haproxyconf

import (
	"errors"
	"slices"
	"strings"
)

// Bounds of one configuration.
const (
	maxBytes = 8 << 20
	maxLines = 200_000
)

var errLarge = errors.New("configuration: larger than 8 MiB or 200,000 lines")

// Line is one setting.
type Line struct {
	Words  []string
	File   string
	Number int
}

// Section is a section with its settings. Base holds those of the defaults
// section that it stands on.
type Section struct {
	Kind, Name string // such as "backend", "shop"; "global" has no name
	Lines      []Line
	Base       []Line
	File       string
	Number     int
}

var kinds = map[string]bool{
	"global": true, "defaults": true, "frontend": true, "backend": true, "listen": true, "peers": true, "resolvers": true, "userlist": true,
	"cache": true, "program": true, "ring": true, "mailers": true, "http-errors": true, "fcgi-app": true, "crt-store": true, "traces": true, "log-profile": true,
}

// File is one file of a configuration; HAProxy reads them as if they were one.
type File struct {
	Name string
	Text []byte
}

// Parse returns the sections in their order.
func Parse(files ...File) ([]Section, error) {
	p := &parser{defaults: map[string][]Line{}}
	bytes := 0
	for _, f := range files {
		if bytes += len(f.Text); bytes > maxBytes {
			return nil, errLarge
		}
		number := 0
		for text := range strings.Lines(string(f.Text)) {
			number++
			if p.lines++; p.lines > maxLines {
				return nil, errLarge
			}
			if words := split(text); len(words) > 0 {
				p.take(Line{words, f.Name, number})
			}
		}
	}
	p.close()
	return p.list, nil
}

type parser struct {
	list     []Section
	now      *Section
	defaults map[string][]Line // by name
	last     []Line            // of the defaults section that was last read
	lines    int
}

func (p *parser) take(l Line) {
	if !kinds[l.Words[0]] {
		if p.now != nil {
			p.now.Lines = append(p.now.Lines, l)
		}
		return
	}
	p.close()
	s := Section{Kind: l.Words[0], File: l.File, Number: l.Number, Base: p.last}
	if len(l.Words) > 1 && l.Words[1] != "from" {
		s.Name = l.Words[1]
	}
	if i := slices.Index(l.Words, "from"); i > 0 && i+1 < len(l.Words) {
		s.Base = p.defaults[l.Words[i+1]]
	} else if s.Kind == "defaults" || s.Kind == "global" {
		s.Base = nil
	}
	p.now = &s
}

// close ends the section that is being read.
func (p *parser) close() {
	if p.now == nil {
		return
	}
	if p.now.Kind == "defaults" {
		all := append(slices.Clone(p.now.Base), p.now.Lines...)
		p.last = all
		p.defaults[p.now.Name] = all
	}
	p.list = append(p.list, *p.now)
	p.now = nil
}

// split cuts a line into words: quotes hold words together, a backslash takes
// the next character as it is, # begins a comment.
func split(line string) (words []string) {
	var word strings.Builder
	quote, in := rune(0), false
	escaped := false
	for _, r := range strings.TrimRight(line, "\r\n") {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, in = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, in = r, true
		case quote == 0 && r == '#':
			return flush(words, &word, in)
		case quote == 0 && (r == ' ' || r == '\t'):
			words, in = flush(words, &word, in), false
		default:
			word.WriteRune(r)
			in = true
		}
	}
	return flush(words, &word, in)
}

func flush(words []string, word *strings.Builder, in bool) []string {
	if !in {
		return words
	}
	words = append(words, word.String())
	word.Reset()
	return words
}

// Get returns the last line of a setting, such as "timeout", "client", in the
// section or below it. A "no" in front of it takes it back.
func (s Section) Get(name ...string) (Line, bool) {
	for _, lines := range [][]Line{s.Lines, s.Base} {
		for _, l := range slices.Backward(lines) {
			words := l.Words
			off := words[0] == "no"
			if off {
				words = words[1:]
			}
			if len(words) >= len(name) && slices.Equal(words[:len(name)], name) {
				return l, !off
			}
		}
	}
	return Line{}, false
}

// All returns the lines of the section itself that begin with a word.
func (s Section) All(word string) (list []Line) {
	for _, l := range s.Lines {
		if l.Words[0] == word {
			list = append(list, l)
		}
	}
	return list
}
