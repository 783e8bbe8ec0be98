package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spinguard/spinguard/drill"
)

func runCompletion(e env, args []string) error {
	f := newFlags(e, "completion", "bash|zsh", "Prints what a shell needs to complete commands, options and ids. The Debian package installs it.",
		"  spinguard completion bash > /etc/bash_completion.d/spinguard\n  spinguard completion zsh > /usr/local/share/zsh/site-functions/_spinguard\n")
	rest, err := f.parse(args, 1, 1)
	if err != nil {
		return err
	}
	switch rest[0] {
	case "bash":
		writeBash(e.stdout)
	case "zsh":
		writeZsh(e.stdout)
	default:
		return fmt.Errorf("%w of completion: %q is none of bash, zsh", errUsage, rest[0])
	}
	return nil
}

// words returns what may follow a command: verbs, options, names of drills.
func (c command) words() []string {
	list := c.verbs()
	switch c.name {
	case "drill":
		list = append(list, drill.Names()...)
		list = append(list, "cases", "rails")
	case "completion":
		list = append(list, "bash", "zsh")
	}
	for _, o := range c.options() {
		if len(o.name) == 1 {
			list = append(list, "-"+o.name)
			continue
		}
		list = append(list, "--"+o.name)
	}
	return list
}

func shown() []command {
	var list []command
	for _, c := range commands() {
		if !c.hidden {
			list = append(list, c)
		}
	}
	return list
}

// writeBash prints the completion for bash. Ids are asked of the agent; without
// one there are none.
func writeBash(w io.Writer) {
	var names []string
	for _, c := range shown() {
		names = append(names, c.name)
	}
	fmt.Fprintf(w, `# bash completion for spinguard; made by: spinguard completion bash
_spinguard() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "%s" -- "$cur"))
        return
    fi
    case "${COMP_WORDS[1]} $prev" in
    "incidents show"|"incidents export") words=$(spinguard incidents --json 2>/dev/null | grep -o '"id":"[^"]*"' | cut -d'"' -f4) ;;
    "quarantine lift") words=$(spinguard quarantine --json 2>/dev/null | grep -o '"id":"[^"]*"' | cut -d'"' -f4) ;;
%s    "flamegraph "*) [[ $cur == -* ]] || { COMPREPLY=($(compgen -f -- "$cur")); return; } ;;&
    *) case "${COMP_WORDS[1]}" in
`, strings.Join(names, " "), bashFiles())
	for _, c := range shown() {
		if words := c.words(); len(words) > 0 {
			fmt.Fprintf(w, "        %s) words=\"%s\" ;;\n", c.name, strings.Join(words, " "))
		}
	}
	fmt.Fprint(w, "        esac ;;\n    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o filenames -o bashdefault -F _spinguard spinguard\n")
}

// bashFiles completes paths after the options that take one.
func bashFiles() string {
	var patterns []string
	for _, c := range shown() {
		for _, o := range c.options() {
			if o.takesFile() {
				patterns = append(patterns, fmt.Sprintf(`"%s -%s"|"%s --%s"`, c.name, o.name, c.name, o.name))
			}
		}
	}
	return "    " + strings.Join(patterns, "|") + ") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
}

// writeZsh prints the completion for zsh.
func writeZsh(w io.Writer) {
	fmt.Fprint(w, "#compdef spinguard\n# zsh completion for spinguard; made by: spinguard completion zsh\n_spinguard() {\n    local -a list\n    if (( CURRENT == 2 )); then\n        list=(\n")
	for _, c := range shown() {
		fmt.Fprintf(w, "            '%s:%s'\n", c.name, strings.ReplaceAll(c.does, "'", "'\\''"))
	}
	fmt.Fprint(w, "        )\n        _describe command list\n        return\n    fi\n    case \"$words[CURRENT-1]\" in\n    -o|--o|--config|--base|--socket|--agent|--out) _files; return ;;\n"+
		"    show|export) list=(${(f)\"$(spinguard incidents --json 2>/dev/null | grep -o '\"id\":\"[^\"]*\"' | cut -d'\"' -f4)\"}) ;;\n"+
		"    lift) list=(${(f)\"$(spinguard quarantine --json 2>/dev/null | grep -o '\"id\":\"[^\"]*\"' | cut -d'\"' -f4)\"}) ;;\n"+
		"    *) case \"$words[2]\" in\n")
	for _, c := range shown() {
		if words := c.words(); len(words) > 0 {
			fmt.Fprintf(w, "        %s) list=(%s) ;;\n", c.name, strings.Join(words, " "))
		}
	}
	fmt.Fprint(w, "        esac ;;\n    esac\n    [[ $words[2] == (flamegraph|drill) ]] && _files\n    compadd -a list\n}\n_spinguard \"$@\"\n")
}
