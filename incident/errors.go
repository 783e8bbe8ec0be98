package incident

import "errors"

// Errors that callers may test for with errors.Is.
var (
	ErrBadID    = errors.New("incident id")              // not an id at all
	ErrNotFound = errors.New("no such incident")         // no folder of that id
	ErrExists   = errors.New("incident exists already")  // Create of an id that is there
	ErrBadFile  = errors.New("name of an incident file") // not a plain file name
	ErrLocked   = errors.New("incidents are written by another agent")
	ErrReadOnly = errors.New("incidents opened for reading only")
)
