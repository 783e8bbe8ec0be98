package spool

// State is what one receiver waits for, and what became of the rest.
type State struct {
	Receiver string
	Counts
}
