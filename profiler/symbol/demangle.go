package symbol

import "github.com/ianlancetaylor/demangle"

// demangled turns C++ and Rust linkage names into readable ones, without
// parameters. The result is bounded: substitutions in a hostile name can grow
// without end.
func demangled(name string) string {
	const longest = 4096
	if len(name) > longest {
		return name
	}
	return demangle.Filter(name, demangle.NoParams, demangle.MaxLength(12))
}
