package nginxconf

import "strings"

// kind is the kind of a token.
type kind int

const (
	eof kind = iota
	text
	ends // ;
	opens
	closes
)

type lexer struct {
	text string
	at   int
	line int
}

// next returns the next token.
func (l *lexer) next() (string, kind) {
	l.skipSpace()
	if l.at >= len(l.text) {
		return "", eof
	}
	switch c := l.text[l.at]; c {
	case ';', '{', '}':
		l.at++
		return "", map[byte]kind{';': ends, '{': opens, '}': closes}[c]
	case '"', '\'':
		return l.quoted(c), text
	}
	from := l.at
	for l.at < len(l.text) {
		c := l.text[l.at]
		if c == '\\' && l.at+1 < len(l.text) {
			l.at += 2
			continue
		}
		if c == '$' && strings.HasPrefix(l.text[l.at:], "${") {
			l.at += 2 // the brace belongs to the variable
			for l.at < len(l.text) && l.text[l.at] != '}' {
				l.at++
			}
		} else if strings.IndexByte(" \t\r\n;{}", c) >= 0 {
			break
		}
		l.at++
	}
	l.at = min(l.at, len(l.text))
	return l.text[from:l.at], text
}

func (l *lexer) skipSpace() {
	for l.at < len(l.text) {
		switch c := l.text[l.at]; {
		case c == '\n':
			l.line++
		case c == '#':
			if end := strings.IndexByte(l.text[l.at:], '\n'); end >= 0 {
				l.at += end
				continue
			}
			l.at = len(l.text)
			return
		case c != ' ' && c != '\t' && c != '\r':
			return
		}
		l.at++
	}
}

// quoted reads a text in quotes.
func (l *lexer) quoted(quote byte) string {
	var b strings.Builder
	for l.at++; l.at < len(l.text); l.at++ {
		c := l.text[l.at]
		if c == quote {
			l.at++
			break
		}
		if c == '\n' {
			l.line++
		}
		if c == '\\' && l.at+1 < len(l.text) {
			l.at++
			c = l.text[l.at]
		}
		b.WriteByte(c)
	}
	return b.String()
}

// skipLua skips a block of Lua, whose braces in strings and comments do not
// count, and returns its text.
func (l *lexer) skipLua() string {
	from := l.at
	for depth := 1; l.at < len(l.text) && depth > 0; {
		rest := l.text[l.at:]
		switch c := rest[0]; {
		case strings.HasPrefix(rest, "--[["), strings.HasPrefix(rest, "[["):
			l.skipTo("]]")
		case strings.HasPrefix(rest, "--"):
			l.skipTo("\n")
		case c == '"' || c == '\'':
			l.quoted(c)
		default:
			switch c {
			case '{':
				depth++
			case '}':
				depth--
			case '\n':
				l.line++
			}
			l.at++
		}
	}
	l.at = min(l.at, len(l.text))
	return strings.TrimSuffix(l.text[from:l.at], "}")
}

func (l *lexer) skipTo(end string) {
	rest := l.text[l.at:]
	n := strings.Index(rest, end)
	if n < 0 {
		n = len(rest)
	} else {
		n += len(end)
	}
	l.line += strings.Count(rest[:n], "\n")
	l.at += n
}
