package main

// Colours of a terminal.
const (
	red    = "31"
	yellow = "33"
	green  = "32"
	grey   = "90"
	bold   = "1"
)

// paint colours a text where colours are welcome.
func (e env) paint(code, s string) string {
	if !e.colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// verdictColour is how bad a verdict looks.
func verdictColour(v string) string {
	switch v {
	case "healthy":
		return green
	case "saturated", "suspect":
		return yellow
	}
	return red
}
