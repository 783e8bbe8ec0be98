// Package profiler turns samples into stacks and stacks into profiles. A
// Process understands the samples of one watched process: kernel, native and
// Lua frames in their true order. A Builder makes a pprof profile of them, a
// Recorder keeps those of the last seconds, Capture takes a profile now.
package profiler
