package luajit

import "errors"

// ErrNone says that the process holds no LuaJIT virtual machine.
var ErrNone = errors.New("no LuaJIT virtual machine")

// ErrIdle says that no Lua function is running: the thread is outside of the
// virtual machine.
var ErrIdle = errors.New("no Lua function is running")

// UnsupportedError says that a LuaJIT is there, but can't be read, and why.
type UnsupportedError struct {
	What string
}

func (e *UnsupportedError) Error() string { return "unsupported LuaJIT: " + e.What }

func unsupported(what string) error { return &UnsupportedError{What: what} }
