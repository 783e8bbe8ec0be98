package proxy

import (
	"io"
	"os"
	"path/filepath"
	"sort"

	"golang.org/x/sys/unix"
)

const maxConfig = 4 << 20

// readConfigs reads a configuration file, or the files of a directory, each
// cut at 4 MiB. What cannot be read is left out: it only names things.
func readConfigs(path string, limit int) [][]byte {
	st, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if st.Mode().IsRegular() {
		return [][]byte{readHead(path, maxConfig)}
	}
	if !st.IsDir() {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(path, "*.cfg"))
	var out [][]byte
	for _, file := range files[:min(len(files), limit)] {
		if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() {
			out = append(out, readHead(file, maxConfig))
		}
	}
	return out
}

func readHead(path string, limit int64) []byte {
	// Not blocking: the file may have become a pipe since it was looked at.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, limit))
	return b
}

func readlink(path string) string {
	target, _ := os.Readlink(path)
	return target
}

func sorted(list []string) []string {
	sort.Strings(list)
	return list
}
