package flamegraph

import (
	"fmt"
	"io"
	"slices"
)

// WriteFolded writes one line a stack, sorted, and the account as comment
// lines that begin with "#". A difference has three columns: stack, value in
// the base, value.
func (p *Profile) WriteFolded(w io.Writer) error {
	out := newOutput(w)
	texts := make([]string, len(p.frames))
	for i, f := range p.frames {
		texts[i] = textOfFrame(f)
	}
	for _, c := range append([]string{"type=" + clean(p.Type), "unit=" + clean(p.Unit)}, p.Account.comments()...) {
		out.text("# ", c, "\n")
	}
	p.eachStack(func(ids []uint32, value, base int64) {
		for i, id := range ids {
			if i > 0 {
				out.text(";")
			}
			out.text(texts[id])
		}
		if p.diff {
			fmt.Fprintf(out, " %d", base)
		}
		fmt.Fprintf(out, " %d\n", value)
	})
	return out.Flush()
}

// eachStack calls f for every distinct stack, labels set aside, in order.
func (p *Profile) eachStack(f func(ids []uint32, value, base int64)) {
	for i := 0; i < len(p.stacks); {
		first, ids := i, p.frameIDs(p.stacks[i])
		var value, base int64
		for ; i < len(p.stacks); i++ {
			if i > first && !p.stacks[i].same(p.stacks[i-1].depth) {
				break
			}
			if p.stacks[i].base {
				base += p.stacks[i].value
			} else {
				value += p.stacks[i].value
			}
		}
		f(ids, value, base)
	}
}

// takeUnit takes back the type and unit that WriteFolded left as comments.
func (p *Profile) takeUnit() {
	p.Account.Notes = slices.DeleteFunc(p.Account.Notes, func(n Note) bool {
		switch n.Key {
		case "type":
			p.Type = n.Value
		case "unit":
			p.Unit = n.Value
		default:
			return false
		}
		return true
	})
}
