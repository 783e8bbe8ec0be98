package luajit

import (
	"fmt"
	"math"
	"reflect"
	"sync"
	"testing"
)

func TestNumber(t *testing.T) {
	for want, f := range map[string]float64{
		"nan": math.NaN(), "inf": math.Inf(1), "-inf": math.Inf(-1), "0": 0, "-7": -7, "0.1": 0.1, "1e+15": 1e15,
		"999999999999999": 999999999999999, "1e+300": 1e300, "0.33333333333333": 1.0 / 3, "-0": math.Copysign(0, -1),
	} {
		if got := number(f); got != want {
			t.Errorf("number(%g) = %s, want %s", f, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a\x1b[31mb": "a?[31mb", "new\nline": "new?line", "größe": "größe",
		string(make([]byte, 70)): "????????????????????????????????????????????????????????????????",
	} {
		if got := printable(in, 64); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFile(t *testing.T) {
	for chunk, want := range map[string]string{
		"@/srv/lua/wrr.lua":              "/srv/lua/wrr.lua",
		"=content_by_lua(nginx.conf:30)": "content_by_lua(nginx.conf:30)",
		"return 1":                       `[string "return 1"]`,
		"local a = 1\nreturn a":          `[string "local a = 1..."]`,
		"local aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa = 1": `[string "local aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."]`,
	} {
		p := proto{chunk: chunk, firstline: 1}
		if got := p.file(); got != want {
			t.Errorf("%q: %s, want %s", chunk, got, want)
		}
	}
	if p := (proto{chunk: "table_getn", firstline: -1}); p.file() != "[builtin:table_getn]" {
		t.Errorf("built-in bytecode: %s", p.file())
	}
}

func TestParseVars(t *testing.T) {
	// Two parameters, a loop's hidden index from instruction 2 to 9, and a
	// name that is cut off.
	vars := parseVars([]byte("a\x00\x00\x0ab\x00\x00\x0a\x01\x02\x07rest"))
	want := []variable{{"a", 0, 10}, {"b", 0, 10}, {"(for index)", 2, 9}}
	if fmt.Sprint(vars) != fmt.Sprint(want) {
		t.Fatalf("%v, want %v", vars, want)
	}
	p := proto{vars: vars}
	if got := p.varName(5, 2); got != "(for index)" {
		t.Errorf("slot 2 at 5 is %q", got)
	}
	if got := p.varName(9, 2); got != "" {
		t.Errorf("slot 2 behind the loop is %q", got)
	}
}

// code is a loop as in: while y ~= 0 do x, y = y, x % y end return x
func loopCode() *proto {
	jump := func(d int) int { return 0x8000 + d }
	op := func(o, a, d int) ins { return ins(o | a<<8 | d<<16) }
	return &proto{bc: []ins{
		op(89, 4, 0),             // 0 FUNCF
		op(9, 1, 0),              // 1 ISNEN y 0
		op(opJMP, 2, jump(1)),    // 2 => 4
		op(opJMP, 2, jump(4)),    // 3 => 8
		op(85, 2, jump(3)),       // 4 LOOP
		op(opMOV, 2, 1),          // 5
		op(36, 1, 0),             // 6 MODVV
		op(opJMP, 2, jump(-7+0)), // 7 => 1
		op(76, 0, 2),             // 8 RET1
	}}
}

// TestDecide holds the snapshot of a comparison, which says where the trace
// would leave, against the line that is really being executed.
func TestDecide(t *testing.T) {
	p := loopCode()
	for _, c := range []struct {
		from, pos int
		compares  bool
		at, after int
	}{
		{1, 3, true, 1, 4},  // leaves to the code behind the loop, stays in it
		{1, 4, true, 1, 3},  // leaves to the loop, goes on behind it
		{1, 3, false, 3, 3}, // no comparison: it is there
		{5, 6, true, 6, 6},  // not a branch
	} {
		if at, after := p.decide(c.from, c.pos, c.compares); at != c.at || after != c.after {
			t.Errorf("from %d, snapshot at %d: %d then %d, want %d then %d", c.from, c.pos, at, after, c.at, c.after)
		}
	}
	if got := p.works(4); got != 6 {
		t.Errorf("the loop's work is at %d, want 6", got)
	}
}

// TestProtoCache loads a prototype again once another one has its address.
func TestProtoCache(t *testing.T) {
	c := newProtoCache()
	load := func(name string) func() *proto { return func() *proto { return &proto{chunk: name} } }
	old, again, other := [40]byte{1}, [40]byte{1}, [40]byte{2}
	if got := c.get(64, old, load("old")).chunk; got != "old" {
		t.Fatal(got)
	}
	if got := c.get(64, again, load("not loaded")).chunk; got != "old" {
		t.Errorf("same prototype: loaded again as %s", got)
	}
	if got := c.get(64, other, load("new")).chunk; got != "new" {
		t.Errorf("address taken by another: still %s", got)
	}
	for i := range 3 * cacheProtos {
		c.get(uint64(8*i), old, func() *proto { return &proto{raw: make([]byte, 8)} })
	}
	if n := len(c.byAt); n > cacheProtos {
		t.Errorf("%d prototypes kept", n)
	}
}

func TestStateName(t *testing.T) {
	for want, v := range map[string]int32{
		"trace": 3, "interpreter": -1, "c": -2, "gc": -3, "exit": -4, "record": -5, "optimise": -6, "assemble": -7, "state(-9)": -9,
	} {
		if got := stateName(v); got != want {
			t.Errorf("vmstate %d is %s, want %s", v, got, want)
		}
	}
}

func TestFindPattern(t *testing.T) {
	code := []byte{0x48, 0x83, 0xec, 0x10, 0x48, 0x83, 0xec, 0x28}
	if got := fmt.Sprint(find(code, "48 83 ec ??")); got != "[0 4]" {
		t.Error(got)
	}
	if got := find(code, "48 83 ec ?? ?? ?? ?? ?? ??"); got != nil {
		t.Error(got)
	}
}

// The same frames, and no values.
func TestWalkPlaces(t *testing.T) {
	m := loadImage(t, "testdata/images/inline-on.gob.gz")
	vms, err := Find(m, m.Maps, nil)
	if err != nil {
		t.Fatal(err)
	}
	full, err := vms[0].Walk(m, &m.Registers)
	if err != nil {
		t.Fatal(err)
	}
	places, err := vms[0].WalkPlaces(m, &m.Registers)
	if err != nil {
		t.Fatal(err)
	}
	values := 0
	for i := range full.Segments {
		for j := range full.Segments[i] {
			values += len(full.Segments[i][j].Values)
			full.Segments[i][j].Values = nil
		}
	}
	if values == 0 || !reflect.DeepEqual(full, places) {
		t.Errorf("%d values, and without them\n%v\nbut\n%v", values, full, places)
	}
}

// TestShared walks with several goroutines at once, as the agent may.
func TestShared(t *testing.T) {
	m := loadImage(t, "testdata/images/inline-on.gob.gz")
	vms, err := Find(m, m.Maps, nil)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				if w, err := vms[0].Walk(m, &m.Registers); err != nil || w.Truncated != "" {
					t.Errorf("%v %s", err, w.Truncated)
				}
				vms[0].Code(nil, m.Registers.PC())
			}
		})
	}
	group.Wait()
}
