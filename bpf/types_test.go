package bpf

import "testing"

// The kernel's types are read once for all programs, until they are forgotten;
// programs can be loaded before and after.
func TestProgramsShareTheKernelsTypes(t *testing.T) {
	s := open(t)
	first := kernelTypes()
	c := openConnects(t)
	if first == nil || kernelTypes() != first {
		t.Error("the types were read again for the second program")
	}
	ForgetTypes()
	if types.spec != nil {
		t.Error("the types were not forgotten")
	}
	again := open(t)
	for _, x := range []interface{ Close() error }{s, c, again} {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}
