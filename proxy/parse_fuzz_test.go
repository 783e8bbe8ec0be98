package proxy

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/profiler/procmem"
)

func FuzzParseProc(f *testing.F) {
	for _, name := range []string{"syscall", "schedstat", "status", "cgroup", "mountinfo", "net/tcp", "net/unix"} {
		b, err := os.ReadFile("/proc/self/" + name)
		if err == nil {
			f.Add(b[:min(len(b), 4096)])
		}
	}
	f.Add([]byte("281 0x4 0x7f 0x200 0xffffffff 0x0 0x8 0x7ffe 0x7f"))
	f.Add([]byte("-1 0x7ffe 0x7f"))
	f.Add([]byte("  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1"))
	f.Add([]byte("stats socket /run/h.sock level admin # \n stats socket ipv6@:::9999"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		parseSyscall(b)
		parseSchedstat(b)
		statusNumber(b, "TracerPid:")
		statusLetter(b, "State:")
		throttledTime(b)
		isFrozen(b)
		parseStatsSockets(b)
		parseMounts(string(b))
		member := parseMembership(string(b))
		for _, m := range parseMounts(string(b)) {
			for _, dir := range member {
				for _, file := range openUpwards(m, dir, "no such file") {
					_ = unix.Close(file)
				}
			}
		}
		for _, line := range bytes.Split(b, []byte("\n")) {
			parseNetSocket(string(line))
			parseUnixSocket(string(line))
		}
	})
}

func FuzzDirectoryEntries(f *testing.F) {
	dir, err := os.Open("/proc/self/task")
	if err != nil {
		f.Fatal(err)
	}
	defer dir.Close()
	b := make([]byte, 4096)
	n, err := unix.Getdents(int(dir.Fd()), b)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:n])
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range appendNumbers(nil, b) {
			if v < 0 {
				t.Fatalf("number %d", v)
			}
		}
	})
}

func FuzzReadCycle(f *testing.F) {
	b := make([]byte, 4096)
	put := func(at int, values ...uint64) {
		for i, v := range values {
			binary.LittleEndian.PutUint64(b[at+8*i:], v)
		}
	}
	copy(b[2000:], "/etc/nginx/nginx.conf")
	copy(b[2100:], "/usr/share/nginx/")
	put(0, imageBase+1024, 1, 232, 10, imageBase)
	put(64, 21, imageBase+2000, 0, 0, 11, imageBase+2000, 17, imageBase+2100)
	put(1024, 6, imageBase+1280, 16)
	copy(b[1280:], []byte{2, 0, 0x1f, 0x90, 127, 0, 0, 1})
	if c, ok := readCycle(&flat{base: imageBase, data: b}, imageBase); !ok || c.prefix != "/usr/share/nginx/" || len(c.listen) != 1 {
		f.Fatalf("the seed is not understood: %+v", c)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		c, _ := readCycle(&flat{base: imageBase, data: b}, imageBase)
		if !printable([]byte(c.conf + c.prefix)) {
			t.Fatalf("text %q %q", c.conf, c.prefix)
		}
	})
}

func FuzzJudgeExecutable(f *testing.F) {
	for _, path := range []string{"/usr/sbin/nginx", "/usr/sbin/haproxy", "/bin/true"} {
		if b, err := os.ReadFile(path); err == nil {
			f.Add(b[:min(len(b), 32<<10)], uint16(0x20), uint64(64))
		}
	}
	f.Fuzz(func(_ *testing.T, b []byte, at uint16, v uint64) {
		b = append([]byte(nil), b...)
		if int(at)+8 <= len(b) {
			binary.LittleEndian.PutUint64(b[at:], v)
		}
		judgeExe(bytes.NewReader(b))
	})
}

func FuzzHAProxyArrays(f *testing.F) {
	info := make([]byte, 4096)
	for i := range 3 {
		binary.LittleEndian.PutUint64(info[i*64:], 0x5000)
	}
	f.Add(info, make([]byte, 8192), uint8(3))
	f.Fuzz(func(t *testing.T, info, activity []byte, threads uint8) {
		n, stride := threadSlots(info, 0x5000, 0x5040)
		if n < 0 || stride < 0 || n > 0 && stride == 0 {
			t.Fatalf("%d slots of %d bytes", n, stride)
		}
		if slot := slotByExtent(activity, max(int(threads), 1)); slot > 0 {
			loopCounter(activity, slot, min(int(threads), len(activity)/slot))
		}
	})
}

func FuzzHAProxyMemory(f *testing.F) {
	b := make([]byte, 48<<10)
	put := func(at int, values ...uint64) {
		for i, v := range values {
			binary.LittleEndian.PutUint64(b[at+8*i:], v)
		}
	}
	const front, back, stream, session, server, text = 0x2000, 0x6000, 0x400, 0x800, 0xa000, 0x100
	copy(b[text:], "front\x00back\x00one\x00")
	put(front+4000, imageBase+text, 0, 0, imageBase+back)
	put(back+4000, imageBase+text+6)
	put(stream, 9, imageBase+server, imageBase+session, 0, imageBase+back)
	put(session, imageBase+front)
	put(server+800, imageBase+back, 0, imageBase+text+11)
	put(64, imageBase+stream)
	f.Add(b, []byte("frontend front\nbackend back\n server one 127.0.0.1:1\n"))
	look := func(b, config []byte) HAProxyContext {
		m := &HAProxyMap{sections: make(map[string]*haproxySection)}
		parseSections(config, m.sections)
		mem := &flat{base: imageBase, data: b}
		m.proxies = m.walk(&budget{mem: mem, left: maxReads}, imageBase+front)
		return m.Context(mem, procmem.Window{Addr: imageBase, Data: b[:min(len(b), 256)]})
	}
	if got := look(b, []byte("frontend front\nbackend back\n server one 127.0.0.1:1\n")); got != (HAProxyContext{"front", "back", "one"}) {
		f.Fatalf("the seed is not understood: %+v", got)
	}
	f.Fuzz(func(t *testing.T, b, config []byte) {
		c := look(b, config)
		if !printable([]byte(c.Frontend + c.Backend + c.Server)) {
			t.Fatalf("%q", c)
		}
	})
}
