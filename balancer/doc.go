// Package balancer is the agent's side of the in-proxy balancer: it writes
// the ledger, in which quarantines are told to the workers, and reads the
// crumbs, in which the workers tell what they are about to do. The Lua library
// lies in lua/resty; docs/formats.md describes the two files.
package balancer
