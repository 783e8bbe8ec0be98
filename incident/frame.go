package incident

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spinguard/spinguard/profiler/stack"
)

// Frame is one entry of the stack in incident.json.
type Frame struct {
	Kind      string        `json:"kind"` // stack.Kind by name
	Function  string        `json:"function"`
	File      string        `json:"file,omitempty"`
	Line      int           `json:"line,omitempty"`
	StartLine int           `json:"start_line,omitempty"`
	Loops     []int         `json:"loops,omitempty"`  // lines at which the loops around line begin, innermost first
	Module    string        `json:"module,omitempty"` // path of the image, native frames
	Address   string        `json:"address,omitempty"`
	Values    []stack.Value `json:"values,omitempty"`
}

// String returns "gcd (wrr.lua:12)", "ngx_event_expire_timers (nginx)", or the
// function alone when neither file nor image is known.
func (f Frame) String() string {
	switch {
	case f.File != "" && f.Line > 0:
		here := f.place(f.Line)
		return fmt.Sprintf("%s (%s%s)", f.Function, here, f.LoopText(here))
	case f.File != "":
		return fmt.Sprintf("%s (%s)", f.Function, path.Base(f.File))
	case f.Module != "":
		return fmt.Sprintf("%s (%s)", f.Function, path.Base(f.Module))
	}
	return f.Function
}

// LoopText names the loops around the frame's line, such as ", in a loop from
// wrr.lua:11", but those that begin at a place that is shown already.
func (f Frame) LoopText(shown ...string) string {
	var places []string
	for _, line := range f.Loops {
		if p := f.place(line); !slices.Contains(shown, p) {
			places = append(places, p)
		}
	}
	if len(places) == 0 {
		return ""
	}
	return ", in a loop from " + strings.Join(places, ", ")
}

func (f Frame) place(line int) string { return fmt.Sprintf("%s:%d", path.Base(f.File), line) }

// FrameText is a sampled frame as incidents list it.
func FrameText(f stack.Frame) string { return frameOf(f).String() }

// SetStack fills Frames, Stack, Hot and Values from a sampled stack. hot is the
// index of the frame to blame; a negative one chooses the innermost Lua frame,
// or the leaf where there is none.
func (e *Evidence) SetStack(s stack.Stack, hot int) {
	e.Frames, e.Stack, e.Values = []string{}, []Frame{}, []stack.Value{}
	for _, f := range s.Frames {
		e.Stack = append(e.Stack, frameOf(f))
		e.Frames = append(e.Frames, frameOf(f).String())
	}
	e.Hot = hot
	if hot < 0 || hot >= len(s.Frames) {
		e.Hot = innermostLua(s.Frames)
	}
	if e.Hot < len(s.Frames) {
		e.Values = append(e.Values, s.Frames[e.Hot].Values...)
	}
}

func innermostLua(frames []stack.Frame) int {
	for i, f := range frames {
		if f.Kind == stack.Lua || f.Kind == stack.Trace {
			return i
		}
	}
	return 0
}

func frameOf(f stack.Frame) Frame {
	g := Frame{
		Kind: f.Kind.String(), Function: f.Function, File: f.File, Line: f.Line,
		StartLine: f.StartLine, Loops: f.Loops, Values: f.Values,
	}
	if f.Mapping != nil {
		g.Module = f.Mapping.Path
	}
	if f.Address != 0 {
		g.Address = fmt.Sprintf("0x%x", f.Address)
	}
	return g
}
