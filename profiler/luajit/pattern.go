package luajit

import (
	"strconv"
	"strings"
)

// find returns where the pattern occurs in the code: hex bytes, ?? is any.
func find(code []byte, pattern string) []int {
	type element struct {
		value byte
		any   bool
	}
	var want []element
	for _, f := range strings.Fields(pattern) {
		v, err := strconv.ParseUint(f, 16, 8)
		want = append(want, element{byte(v), err != nil})
	}
	var hits []int
	for i := 0; i+len(want) <= len(code); i++ {
		match := true
		for j, w := range want {
			if !w.any && code[i+j] != w.value {
				match = false
				break
			}
		}
		if match {
			hits = append(hits, i)
		}
	}
	return hits
}
