package cfi

import (
	"bufio"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// section reads .eh_frame of a real program.
func section(t testing.TB, path string) ([]byte, uint64) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		if os.Getenv("REQUIRE_BPF") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	defer func() { _ = f.Close() }()
	s := f.Section(".eh_frame")
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	return data, s.Addr
}

var columns = map[string]uint8{
	"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7, "r8": 8, "r9": 9, "r10": 10,
	"r11": 11, "r12": 12, "r13": 13, "r14": 14, "r15": 15, "ra": 16, "rip": 16,
}

// describe writes a rule as readelf does.
func describe(r Rule) string {
	switch r.Op {
	case Undefined, Same:
		return "u" // readelf writes u for what was never mentioned, too
	case Offset:
		return fmt.Sprintf("c%+d", r.N)
	case ValueOffset:
		return fmt.Sprintf("v%+d", r.N)
	case Expression:
		return "exp"
	case ValueExpr:
		return "vexp"
	}
	return "?"
}

func describeCFA(r Rule) string {
	if r.Op == ValueExpr {
		return "exp"
	}
	for name, reg := range columns {
		if reg == r.Source && name != "rip" {
			return fmt.Sprintf("%s%+d", name, r.N)
		}
	}
	return "?"
}

// TestAgainstReadelf compares every row of real programs with binutils'
// reading of them.
func TestAgainstReadelf(t *testing.T) {
	if _, err := exec.LookPath("readelf"); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{
		"/usr/sbin/nginx", "/usr/sbin/haproxy", "/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libgcc_s.so.1",
		"/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	} {
		t.Run(path, func(t *testing.T) { compare(t, path) })
	}
}

func compare(t *testing.T, path string) {
	data, addr := section(t, path)
	table, err := Parse(data, addr, EHFrame)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("readelf", "--debug-dump=frames-interp", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	var names []string
	rows, functions, inFunction := 0, 0, false
	scan := bufio.NewScanner(out)
	for scan.Scan() {
		fields := strings.Fields(scan.Text())
		switch {
		case len(fields) > 3 && (fields[3] == "CIE" || fields[3] == "FDE"):
			inFunction = fields[3] == "FDE"
			if inFunction {
				functions++
			}
		case len(fields) > 1 && fields[0] == "LOC":
			names = fields[2:]
		case inFunction && len(fields) == len(names)+2 && len(fields[0]) == 16:
			rows++
			if message := check(table, fields, names); message != "" {
				t.Errorf("%s: %s", scan.Text(), message)
			}
		}
	}
	if functions != table.Len() || rows == 0 {
		t.Errorf("%d functions and %d rows by readelf, %d functions here", functions, rows, table.Len())
	}
	t.Logf("%d functions, %d rows", functions, rows)
}

func check(table *Table, fields, names []string) string {
	pc, err := strconv.ParseUint(fields[0], 16, 64)
	if err != nil {
		return err.Error()
	}
	f, ok := table.Function(pc)
	if !ok {
		return "no function"
	}
	row, ok := f.Row(pc)
	if !ok {
		return "no row"
	}
	if got := describeCFA(row.CFA); got != fields[1] {
		return "CFA " + got
	}
	for i, name := range names {
		got, want := describe(row.Rule(columns[name])), fields[i+2]
		if want == "s" {
			want = "u"
		}
		if got != want {
			return fmt.Sprintf("%s: %s, want %s", name, got, want)
		}
	}
	return ""
}
