package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
)

// option is one option of a command, as its help text lists it.
type option struct {
	name, value string // value: its placeholder; empty for a switch
}

// helpText returns what `spinguard NAME --help` prints. Manual page and
// completions are made from it, so that nothing is said twice.
func (c command) helpText() string {
	var out bytes.Buffer
	e := env{ctx: context.Background(), stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(string) string { return "" }}
	if err := c.run(e, []string{"--help"}); exitCode(env{stderr: &bytes.Buffer{}}, err) != 0 {
		return ""
	}
	return out.String()
}

var optionLine = regexp.MustCompile(`(?m)^  -([a-z][a-z-]*)(?: (\S+))?\s*$`)

// options returns the options of a command, in the order of its help text.
func (c command) options() []option {
	var list []option
	for _, m := range optionLine.FindAllStringSubmatch(c.helpText(), -1) {
		list = append(list, option{m[1], m[2]})
	}
	return list
}

// takesFile says that the value of the option is a path.
func (o option) takesFile() bool {
	switch o.value {
	case "FILE", "SOCKET", "program", "folder":
		return true
	}
	return false
}

// verbs returns the words that may follow a command's name: the lower-case
// ones of its arguments, such as list, add and lift.
func (c command) verbs() []string {
	open, rest, ok := strings.Cut(c.args, "[")
	if !ok || open != "" {
		return nil
	}
	inside, _, _ := strings.Cut(rest, "]")
	var list []string
	for alternative := range strings.SplitSeq(inside, "|") {
		word, _, _ := strings.Cut(strings.TrimSpace(alternative), " ")
		if word != "" && word[0] >= 'a' && word[0] <= 'z' {
			list = append(list, word)
		}
	}
	return list
}
