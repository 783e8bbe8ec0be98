// Package flamegraph turns profiles into pictures and files that people work
// with: it reads pprof and folded text, merges the stacks, and writes SVG,
// an offline HTML page, folded text, speedscope JSON and pprof, each of a
// single profile or of the difference between two.
//
// A Profile keeps every distinct stack as a run of small frame numbers in one
// arena, sorted. A tree is never held whole: one pass over the sorted stacks
// opens and closes nodes and drops those that are too narrow to see, so a
// million distinct stacks need memory for the stacks alone.
//
// Names in a profile come from other processes and are treated as hostile:
// they are cut, made valid UTF-8 and freed of control characters when they
// are read, and escaped when they are written.
package flamegraph
