package bpf

import "time"

// Sample is what the sampler copied at one instant of one watched thread.
type Sample struct {
	When        time.Duration // CLOCK_MONOTONIC
	PID, TID    int           // as the agent's pid namespace sees them
	CPU         int
	Weight      time.Duration // how much CPU time this sample stands for: the period of its event
	CPUTime     time.Duration // of the thread since its start (sum_exec_runtime)
	Voluntary   uint64        // voluntary context switches since its start
	Involuntary uint64
	RunDelay    time.Duration // time it was ready to run but had no CPU, since its start; 0: the kernel does not tell
	Progress    uint64        // the progress word
	ProgressOK  bool          // the progress word could be read
	InKernel    bool          // the thread was in the kernel
	Syscall     int64         // number of the system call it was in, -1 if none
	Full        bool          // the windows below were copied
	Registers   [17]uint64
	KernelStack []uint64 // return addresses, leaf first
	StackCut    bool     // the stack goes on beyond the copied window
	Stack       Window   // from the stack pointer towards the stack's end
	Further     []Window // what Stack does not hold: deeper, or of another stack that frame pointers lead to
	LuaGlobal   Window   // the part of global_State that the Watch asked for
	LuaState    Window   // lua_State of the running coroutine
	LuaStack    Window   // its value stack, as much as fits
	Crumb       []byte   // the worker's crumb slot

	raw []byte // the record, until Load has copied the windows from it
}

// Window is a copied piece of the thread's memory.
type Window struct {
	Addr uint64
	Data []byte
}

// Watch tells the sampler what to copy for one thread. Zero addresses mean
// that the thing is not known, and is not copied.
type Watch struct {
	PID, TID     int
	ProgressAddr uint64
	ProgressSize int    // 4 or 8 bytes
	StackEnd     uint64 // end of the stack's mapping; 0: for a process's first thread taken from the task, else not known
	CrumbAddr    uint64 // the worker's slot in its own mapping of the crumb file
	Lua          LuaWatch
	Full         bool // copy the windows with each sample, not only now and then
	Patient      bool // samples in which the progress word has moved end no Read that waits, with windows or not
	// Switches says that the thread runs on several stacks, and that frame
	// pointers lead from one to the other, as in Go programs.
	Switches bool
}

// LuaWatch says where the Lua VM of a thread keeps what the sampler copies.
// The offsets are derived from the process, see profiler/luajit.
type LuaWatch struct {
	Global       uint64 // address of global_State, 0: no VM
	GlobalOffset int    // the window of global_State starts here ...
	GlobalSize   int    // ... and is this long, at most 512 bytes
	CurL         int    // offsets inside global_State
	JITBase      int
	Base         int // offsets inside lua_State
	Top          int
	Stack        int
	MaxStack     int
}
