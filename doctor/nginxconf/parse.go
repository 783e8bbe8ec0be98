// Package nginxconf reads an nginx configuration with its includes, as far as
// checks of single directives need it. It is bounded in files, bytes, depth
// and directives, and evaluates nothing.
package nginxconf

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Bounds of one configuration.
const (
	maxFiles      = 500
	maxBytes      = 8 << 20
	maxDirectives = 200_000
	maxDepth      = 32
)

var errLarge = errors.New("configuration: larger than 500 files, 8 MiB or 200,000 directives")

// Directive is one directive, with those in its block.
type Directive struct {
	Name  string
	Args  []string
	Block []Directive
	Lua   string // the text of a block of Lua
	File  string
	Line  int
}

// Reader reads files as the proxy sees them.
type Reader struct {
	Read func(path string) ([]byte, error)
	Glob func(pattern string) []string // sorted
}

type parser struct {
	r                 Reader
	prefix            string // of relative includes
	files, bytes, all int
}

// Parse reads the file at path. Relative includes are below the folder of that
// file, as in nginx. A broken include is left out; the error is the first.
func Parse(r Reader, file string) ([]Directive, error) {
	p := &parser{r: r, prefix: path.Dir(file)}
	return p.file(file, 0)
}

func (p *parser) file(name string, depth int) ([]Directive, error) {
	text, err := p.r.Read(name)
	if err != nil {
		return nil, err
	}
	p.files++
	p.bytes += len(text)
	if p.files > maxFiles || p.bytes > maxBytes || depth > maxDepth {
		return nil, errLarge
	}
	l := &lexer{text: string(text), line: 1}
	return p.block(l, name, depth, false)
}

// block reads directives up to the end of a block or of the file.
func (p *parser) block(l *lexer, name string, depth int, inner bool) ([]Directive, error) {
	var list []Directive
	if depth > maxDepth {
		return nil, errLarge
	}
	for {
		d, end, err := p.directive(l, name, depth)
		if err != nil || end == "" || end == "}" {
			if err == nil && (end == "}") != inner {
				err = fmt.Errorf("%s line %d: a brace too few or too many", name, l.line)
			}
			return list, err
		}
		if d.Name == "include" && len(d.Args) == 1 {
			more, err := p.include(d.Args[0], depth)
			list = append(list, more...)
			if err != nil {
				return list, err
			}
			continue
		}
		list = append(list, d)
	}
}

// directive reads one directive; end is "" at the end of the file and "}" at
// that of the block.
func (p *parser) directive(l *lexer, name string, depth int) (d Directive, end string, err error) {
	d.File = name
	var words []string
	for {
		word, kind := l.next()
		switch kind {
		case eof:
			return d, "", nil
		case closes:
			return d, "}", nil
		case text:
			if len(words) == 0 {
				d.Line = l.line
			}
			words = append(words, word)
			continue
		}
		if p.all++; p.all > maxDirectives {
			return d, "", errLarge
		}
		if len(words) > 0 {
			d.Name, d.Args = words[0], words[1:]
		}
		switch {
		case kind == opens && strings.HasSuffix(d.Name, "_by_lua_block"):
			d.Lua = l.skipLua()
		case kind == opens:
			d.Block, err = p.block(l, name, depth+1, true)
		}
		return d, ";", err
	}
}

func (p *parser) include(pattern string, depth int) ([]Directive, error) {
	if !path.IsAbs(pattern) {
		pattern = path.Join(p.prefix, pattern)
	}
	names := []string{pattern}
	if strings.ContainsAny(pattern, "*?[") {
		names = p.r.Glob(pattern)
	}
	var list []Directive
	for _, name := range names {
		more, err := p.file(name, depth+1)
		list = append(list, more...)
		if errors.Is(err, errLarge) {
			return list, err
		}
	}
	return list, nil
}
