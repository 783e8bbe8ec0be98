package symbol

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hidden returns the vaddr of hidden_function by the code that calls it.
func hidden(t *testing.T, path string) uint64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	image, err := newImage(path, f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	v, _, ok := image.Lookup("hidden_function")
	if !ok {
		t.Fatal("no hidden_function before stripping")
	}
	return v
}

// TestStripped wants what the file does not name to get the start of its
// range, and never the nearest symbol.
func TestStripped(t *testing.T) {
	path := build(t)
	v := hidden(t, path)
	run(t, "strip", path)
	p := start(t, path)
	image, _ := p.image(t, NewCache(4), p.function)
	want := fmt.Sprintf("program+%#x", v)
	for _, off := range []uint64{0, 1, 3} {
		if got := image.Name(v + off); got != want {
			t.Errorf("name at +%d: %q, want %q", off, got, want)
		}
	}
	if got := image.Name(1); got != "program+0x1" {
		t.Errorf("name outside of all functions: %q", got)
	}
	// The next run lies elsewhere, and the name is the same.
	again := start(t, path)
	image, vaddr := again.image(t, NewCache(4), again.function-p.function+p.biased(t, v))
	if got := image.Name(vaddr); got != want {
		t.Errorf("name in the next run: %q, want %q", got, want)
	}
}

// TestSeparateDebug finds the name in every place where distributions put the
// symbols of a stripped program.
func TestSeparateDebug(t *testing.T) {
	ways := []struct {
		name  string
		strip func(t *testing.T, path string)
	}{
		{"debuglink", func(t *testing.T, path string) { linkDebug(t, path, ".debug/program.debug") }},
		{"debuglink beside it", func(t *testing.T, path string) { linkDebug(t, path, "program.debug") }},
		{"debugdata", func(t *testing.T, path string) {
			mini := path + ".mini"
			run(t, "objcopy", "--only-keep-debug", path, mini)
			run(t, "strip", path)
			run(t, "xz", mini)
			run(t, "objcopy", "--add-section", ".gnu_debugdata="+mini+".xz", path)
		}},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			path := build(t)
			v := hidden(t, path)
			way.strip(t, path)
			p := start(t, path)
			image, _ := p.image(t, NewCache(4), p.function)
			if got := image.Name(v); got != "hidden_function" {
				t.Errorf("name %q", got)
			}
		})
	}
}

// linkDebug strips a program and lets it name a debug file.
func linkDebug(t *testing.T, path, name string) {
	t.Helper()
	debug := filepath.Join(filepath.Dir(path), name)
	keepDebug(t, path, debug)
	run(t, "strip", path)
	run(t, "objcopy", "--add-gnu-debuglink="+debug, path)
}

// TestSystemDebugFolder finds the name under /usr/lib/debug as the program's
// own root has it, by build id and by the link's name.
func TestSystemDebugFolder(t *testing.T) {
	needRoot(t)
	for _, byID := range []bool{true, false} {
		root := t.TempDir()
		path := build(t, "-static", "-Wl,--build-id=0xab12cd")
		v := hidden(t, path)
		debug := filepath.Join(root, "/usr/lib/debug/.build-id/ab/12cd.debug")
		if !byID {
			debug = filepath.Join(root, "/usr/lib/debug/program.debug")
		}
		if err := os.MkdirAll(filepath.Dir(debug), 0o755); err != nil {
			t.Fatal(err)
		}
		run(t, "objcopy", "--only-keep-debug", path, debug)
		run(t, "strip", path)
		if !byID {
			run(t, "objcopy", "--add-gnu-debuglink="+debug, path)
		}
		p := rooted(t, root, path)
		image, _ := p.image(t, NewCache(4), p.function)
		if got := image.Name(v); got != "hidden_function" {
			t.Errorf("by build id: %v, name %q", byID, got)
		}
	}
}

// TestDebugLinkChecksum wants a debug file that was changed to be refused.
func TestDebugLinkChecksum(t *testing.T) {
	path := build(t)
	v := hidden(t, path)
	debug := filepath.Join(filepath.Dir(path), "program.debug")
	linkDebug(t, path, "program.debug")
	data, err := os.ReadFile(debug)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(debug, append(data, 0), 0o644); err != nil {
		t.Fatal(err)
	}
	p := start(t, path)
	image, _ := p.image(t, NewCache(4), p.function)
	if got := image.Name(v); !strings.HasPrefix(got, "program+0x") {
		t.Errorf("name %q from a file with another checksum", got)
	}
}

func TestDemangled(t *testing.T) {
	tests := map[string]string{
		"_ZN3foo3barEiPKc":                               "foo::bar",
		"_ZNSt6vectorIiSaIiEE9push_backEOi":              "std::vector<int, std::allocator<int> >::push_back",
		"_RNvCs1234_7mycrate3foo":                        "mycrate::foo",
		"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE": "core::fmt::Formatter::pad",
		"_ZN47_$LT$r..Sq$u20$as$u20$core..ops..arith..Add$GT$3add17h2354d038a4897a08E": "<r::Sq as core::ops::arith::Add>::add",
		"_ZN1r5apply17h0123456789abcdefE.llvm.123456":                                  "r::apply",
		"_ZN3fooIiEplERKS_":                        "foo<int>::operator+",
		"_ZN3foocvlEv":                             "foo::operator long",
		"_ZZN3app4workEvENKUliE_clEi":              "app::work()::{lambda(int)#1}::operator()",
		"_ZN12_GLOBAL__N_13barEv.lto_priv.0":       "(anonymous namespace)::bar.lto_priv.0",
		"_ZN3app4workEv.part.0":                    "app::work.part.0",
		"_ZN3app4workEv.isra.0.cold":               "app::work.isra.0.cold",
		"ngx_cut.part.0":                           "ngx_cut.part.0",
		"_ZN3app.part.0":                           "_ZN3app.part.0", // cut: no name of C++
		"ngx_http_process_request":                 "ngx_http_process_request",
		"_Z" + strings.Repeat("1", 5000):           "_Z" + strings.Repeat("1", 5000),
		"_ZN" + strings.Repeat("3fooI", 500) + "E": "_ZN" + strings.Repeat("3fooI", 500) + "E",
	}
	for in, want := range tests {
		if got := demangled(in); got != want {
			t.Errorf("%.60s: %.100q, want %.100q", in, got, want)
		}
	}
}

// TestVDSO names what lies in no file.
func TestVDSO(t *testing.T) {
	p := start(t, build(t))
	for _, m := range p.maps {
		if m.Path != "[vdso]" {
			continue
		}
		image, vaddr := p.image(t, NewCache(4), m.Start)
		v, _, ok := image.Lookup("__vdso_clock_gettime")
		if !ok || vaddr != 0 {
			t.Fatalf("vDSO starts at %#x, has clock_gettime: %v", vaddr, ok)
		}
		if got := image.Name(v + 2); !strings.Contains(got, "clock_gettime") {
			t.Errorf("name %q", got)
		}
		return
	}
	t.Skip("no vDSO on this machine")
}
