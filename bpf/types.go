package bpf

import (
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// types are those of the running kernel. To read them takes longer than to load
// a program, so programs that are loaded one after the other share them.
var types struct {
	mu   sync.Mutex
	spec *btf.Spec
}

// ForgetTypes frees the kernel's types, a few megabytes. Whatever is loaded
// later reads them again.
func ForgetTypes() {
	types.mu.Lock()
	defer types.mu.Unlock()
	types.spec = nil
}

func kernelTypes() *btf.Spec {
	types.mu.Lock()
	defer types.mu.Unlock()
	if types.spec == nil {
		// Without them the loader tries for itself, and says what is wrong.
		types.spec, _ = btf.LoadKernelSpec()
	}
	return types.spec
}

// withTypes are options of a loader that uses them. What the programs want to
// know is in the kernel proper, not in its modules.
func withTypes() *ebpf.CollectionOptions {
	return &ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{KernelTypes: kernelTypes()}}
}
