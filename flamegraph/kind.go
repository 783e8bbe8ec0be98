package flamegraph

import (
	"path"
	"strings"

	"github.com/spinguard/spinguard/profiler/stack"
)

// pseudo maps the name of a pseudo mapping to the kind of its frames.
var pseudo = map[string]stack.Kind{
	"[lua]": stack.Lua, "[trace]": stack.Trace, "[builtin]": stack.Builtin, "[vm]": stack.VM,
	"[pcre]": stack.PCRE, "[kernel]": stack.Kernel, "[unknown]": stack.Unknown,
	"[kernel.kallsyms]": stack.Kernel, "[vmlinux]": stack.Kernel, "[kernel.vmlinux]": stack.Kernel,
}

// mappingOf is the inverse of pseudo for the kinds that have one.
var mappingOf = map[stack.Kind]string{
	stack.Lua: "[lua]", stack.Trace: "[trace]", stack.Builtin: "[builtin]", stack.VM: "[vm]",
	stack.PCRE: "[pcre]", stack.Kernel: "[kernel]", stack.Unknown: "[unknown]",
}

// kindOfMapping tells a frame's kind by its mapping's file. A frame without
// one is native if it has a name: foreign profiles often carry no mapping.
func kindOfMapping(file string, named bool) stack.Kind {
	if k, ok := pseudo[file]; ok {
		return k
	}
	if strings.HasPrefix(file, "[kernel") || strings.HasSuffix(file, ".ko") {
		return stack.Kernel
	}
	if file == "" && !named {
		return stack.Unknown
	}
	return stack.Native
}

// suffixes mark the kind in folded text. _[k], _[j] and _[i] are the usual
// ones of perf's tools (kernel, jitted, inlined); the others are ours.
var suffixes = map[byte]stack.Kind{
	'k': stack.Kernel, 'j': stack.Trace, 'l': stack.Lua, 'b': stack.Builtin,
	'v': stack.VM, 'p': stack.PCRE, 'i': stack.Native,
}

var suffixOf = map[stack.Kind]string{
	stack.Kernel: "_[k]", stack.Trace: "_[j]", stack.Lua: "_[l]", stack.Builtin: "_[b]",
	stack.VM: "_[v]", stack.PCRE: "_[p]",
}

// frameOfText is the frame that one part of a folded line stands for.
func frameOfText(s string) Frame {
	if n := len(s) - 4; n > 0 && s[n] == '_' && s[n+1] == '[' && s[n+3] == ']' {
		if kind, ok := suffixes[s[n+2]]; ok {
			return Frame{Name: s[:n], Kind: kind}
		}
	}
	if s == "" || s[0] == '[' && s[len(s)-1] == ']' {
		return Frame{Name: s, Kind: pseudo[s]}
	}
	return Frame{Name: s, Kind: stack.Native}
}

// textOfFrame is the inverse of frameOfText. A semicolon would end the frame,
// and a number after a space would be read as a value.
func textOfFrame(f Frame) string {
	s := strings.ReplaceAll(f.Label(), ";", ":") + suffixOf[f.Kind]
	if rest, _, ok := cutNumber([]byte(s)); ok {
		return string(rest) + "_" + s[strings.LastIndexByte(s, ' ')+1:]
	}
	return s
}

// imageName is the last part of an image's path.
func imageName(file string) string {
	if file == "" || file[0] == '[' {
		return ""
	}
	return path.Base(file)
}
