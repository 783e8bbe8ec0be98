package symbol

import (
	"regexp"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// clone is what a compiler appends to the name of a part or a variant of a
// function.
var clone = regexp.MustCompile(`(\.(cold|part|isra|constprop|lto_priv|localalias|clone|actor|destroy|resume)(\.[0-9]+)?)+$`)

// demangled turns C++ and Rust linkage names into readable ones, without
// parameters. What tells the parts of a function apart stays, or a function
// that calls its own part would look as if it called itself. The result is
// bounded: substitutions in a hostile name can grow without end.
func demangled(name string) string {
	const longest = 4096
	if len(name) > longest || !strings.HasPrefix(name, "_") {
		return name
	}
	part := clone.FindString(name)
	whole := name[:len(name)-len(part)]
	if readable := demangle.Filter(whole, demangle.NoParams, demangle.MaxLength(12)); readable != whole {
		return readable + part
	}
	return name
}
