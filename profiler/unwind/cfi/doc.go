// Package cfi reads call frame information, the tables in .eh_frame and
// .debug_frame that say how to get from a function's frame to its caller's.
//
// A Table knows the functions and works out the rules of one of them when it
// is first asked for; it keeps the rules of the functions that are in use, in
// bounded memory, since a large program has millions of rules and a stuck
// worker touches a dozen. The bytes are foreign: bad records are skipped,
// lengths are checked before use, and no count from the file sizes a loop.
package cfi
