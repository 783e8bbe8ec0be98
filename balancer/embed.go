package balancer

import "embed"

// Lua holds the in-proxy library below "lua", for tools that bring it along.
// It is read-only and may be shared.
//
//go:embed lua
var Lua embed.FS
