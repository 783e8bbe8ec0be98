package symbol

import (
	"os"
	"strings"
	"testing"
)

func TestKallsyms(t *testing.T) {
	const text = `ffffffff81000000 T _stext
ffffffff81000040 t do_one_initcall
ffffffff81000100 W weak_one
ffffffff81000100 T alias_of_weak_one
ffffffff81000200 D jiffies
ffffffff810002f0 t __pfx_padded
ffffffff81000300 T padded
ffffffff810003f0 t __cfi_checked
ffffffff81000400 T checked
ffffffff81000500 T _etext
ffffffffc0201000 t nft_do_chain	[nf_tables]
ffffffffc0201100 t nft_last	[nf_tables]
ffffffffc0205000 t veth_open	[veth]
ffffffffc0205080 t veth_last	[veth]
garbage
`
	table := parseKallsyms(strings.NewReader(text))
	tests := map[uint64]string{
		0xffffffff81000000: "_stext",
		0xffffffff8100003f: "_stext",
		0xffffffff81000040: "do_one_initcall",
		0xffffffff81000180: "weak_one", // the first of aliases, as the file lists them
		0xffffffff81000310: "padded",
		0xffffffff810003f8: "padded", // padding has no name of its own
		0xffffffff81000400: "checked",
		0xffffffffc0201010: "nft_do_chain",
		0xffffffffc0201110: "nft_last",
		0xffffffffc0201fff: "nft_last",
		0xffffffffc0202000: "", // another module follows: perhaps one that was loaded since
		0xffffffffc0205010: "veth_open",
		0xffffffffc0205090: "", // nothing follows: its length is unknown
		0xffffffff91000000: "", // too far from any function
		0xfffffffe00000000: "",
		0x1000:             "",
	}
	if len(table.funcs) != 10 {
		t.Errorf("%d functions are kept, want 10", len(table.funcs))
	}
	for addr, want := range tests {
		if got := table.name(addr); got != want {
			t.Errorf("%#x: %q, want %q", addr, got, want)
		}
	}
}

// TestHiddenKernel is what kptr_restrict leaves: addresses of zero.
func TestHiddenKernel(t *testing.T) {
	var k Kernel
	k.once.Do(func() {
		k.funcs = parseKallsyms(strings.NewReader("0000000000000000 T _stext\n0000000000000000 T x\n"))
	})
	if got := k.Name(0xffffffff81000123); got != "[kernel]+0xffffffff81000123" {
		t.Errorf("name %q", got)
	}
}

func TestThisKernel(t *testing.T) {
	if !KernelShown() {
		skip(t, "the kernel hides its symbols")
	}
	data, err := os.ReadFile(kallsyms)
	if err != nil {
		t.Fatal(err)
	}
	var k Kernel
	for line := range strings.Lines(string(data)) {
		x, ok := parseKernelSymbol([]byte(strings.TrimSuffix(line, "\n")))
		if !ok || string(x.name) != "vfs_read" {
			continue
		}
		if got := k.Name(x.addr + 1); got != "vfs_read" {
			t.Errorf("name %q", got)
		}
		t.Logf("%d functions, %d kB", len(k.funcs.funcs), (len(k.funcs.funcs)*8+cap(k.funcs.names))>>10)
		return
	}
	t.Error("the kernel shows no vfs_read")
}

// Variables by CPU begin at 0 also where addresses are shown, on kernels up to
// 6.13.
func TestShowsCode(t *testing.T) {
	const head = "0000000000000000 A fixed_percpu_data\n0000000000001000 A cpu_debug_store\n"
	for text, want := range map[string]bool{
		head + "ffffffff81000000 T startup_64\n": true,
		head + "0000000000000000 T startup_64\n": false,
		"":                                       false,
	} {
		if got := showsCode(strings.NewReader(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
