package proxy

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// flat is a memory of one piece.
type flat struct {
	base uint64
	data []byte
	n    int
}

func (f *flat) ReadMemory(addr uint64, buf []byte) error {
	f.n++
	if addr < f.base || addr-f.base > uint64(len(f.data)) || uint64(len(buf)) > uint64(len(f.data))-(addr-f.base) {
		return errors.New("not mapped")
	}
	copy(buf, f.data[addr-f.base:])
	return nil
}

const imageBase = 0x10000

// requestImage is a memory with a stack, a request, and what it points to.
func requestImage(line string) []byte {
	b := make([]byte, 16<<10)
	put := func(at int, values ...uint64) {
		for i, v := range values {
			binary.LittleEndian.PutUint64(b[at+8*i:], v)
		}
	}
	text := func(at int, s string) (size, addr uint64) {
		copy(b[at:], s)
		return uint64(len(s)), uint64(imageBase + at)
	}
	const request, strs, upstream, conf, peer = 0x1000, 0x2000, 0x2800, 0x3000, 0x3400
	put(64, imageBase+request)
	size, addr := text(strs, line)
	put(request, requestMagic, 0x5000, 0, 0, 0, 0, 0, 0, 0, imageBase+upstream)
	put(request+0x300, 1796000000, 123, 2, 1001, size, addr, 5, addr+4, 0, 0, imageBase+request)
	size, addr = text(strs+0x100, "backend")
	put(conf, 1, 1, 0, 0, 0, 0, size, addr, imageBase+strs+0x140, 12)
	copy(b[strs+0x140:], "/etc/nginx/nginx.conf\x00")
	put(upstream, 0, imageBase+peer, 16, imageBase+peer+64, 0, imageBase+conf)
	copy(b[peer:], []byte{2, 0, 0x1f, 0x90, 127, 0, 0, 1})
	put(peer+64, 4, imageBase+strs+0x300)
	copy(b[strs+0x300:], "peer")
	put(request+0x100, imageBase+request+0x180)
	copy(b[strs+0x310:], "Hostexample.com")
	put(request+0x180, 7, 4, imageBase+strs+0x310, 11, imageBase+strs+0x314)
	return b
}

func search(image []byte) (Request, bool, int) {
	mem := &flat{base: imageBase, data: image}
	live := procmem.Window{Addr: imageBase, Data: image[:min(len(image), 512)]}
	r, ok := FindRequest(mem, live, 0)
	return r, ok, mem.n
}

func TestFindsRequestInImage(t *testing.T) {
	r, ok, _ := search(requestImage("GET /spin?w=0&token=secret HTTP/1.1"))
	if !ok || r.Line(false) != "GET /spin?*** HTTP/1.1" || r.Host != "example.com" || r.Start != 1796000000123 {
		t.Errorf("%v %+v", ok, r)
	}
	var f RequestFinder
	for range 2 {
		mem := &flat{base: imageBase, data: requestImage("GET /spin?w=0&token=secret HTTP/1.1")}
		again, ok := f.Find(mem, procmem.Window{Addr: imageBase, Data: mem.data[:512]}, 0)
		if !ok || again != r {
			t.Errorf("once more: %v %+v, want %+v", ok, again, r)
		}
	}
	want := Upstream{Name: "backend", File: "/etc/nginx/nginx.conf", Line: 12, Peer: "127.0.0.1:8080", PeerName: "peer"}
	if r.Upstream != want {
		t.Errorf("upstream %+v, want %+v", r.Upstream, want)
	}
}

func TestRefusesWhatIsNoRequest(t *testing.T) {
	for _, line := range []string{"", "GET", "get / HTTP/1.1", "GET / HTTP/x.1", "\x00\x00\x00 / HTTP/1.1", "GET / HTTP/1.", " / HTTP/1.1"} {
		if r, ok, _ := search(requestImage(line)); ok {
			t.Errorf("%q was taken for the request %q", line, r.Line(true))
		}
	}
	freed := requestImage("GET / HTTP/1.1")
	binary.LittleEndian.PutUint64(freed[0x1300+32:], 0) // nginx sets the length to 0 when it frees a request
	if _, ok, _ := search(freed); ok {
		t.Error("a freed request was found")
	}
}

// A memory in which everything looks like an upstream but nothing is must not
// keep the search busy.
func TestSearchIsBounded(t *testing.T) {
	b := requestImage("GET / HTTP/1.1")
	put := func(at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }
	const upstream, conf = 0x3800, 0x2800
	for i := range upstreamWords {
		put(0x1000+upstreamFirst+8*i, uint64(imageBase+upstream+8*i))
	}
	for at := upstream; at+8 <= len(b); at += 8 {
		put(at, imageBase+conf)
	}
	for at := conf; at < conf+256; at += 32 { // host, file, line; the host is not mapped
		put(at, 5)
		put(at+8, 0x100000000)
		put(at+16, imageBase+0x2140)
		put(at+24, 7)
	}
	if _, ok, reads := search(b); !ok || reads > maxReads+1 || reads < maxReads {
		t.Errorf("found %v with %d reads, the search should end after %d", ok, reads, maxReads)
	}
}

func TestMasksCredentials(t *testing.T) {
	for in, want := range map[string]string{
		"http://me:pw@host/a":     "http://***@host/a",
		"http://me:p/w@host/a":    "http://me:p/w@host/a",
		"https://a@b@host":        "https://***@host",
		"/a@b":                    "/a@b",
		"/go/http://me:pw@host/x": "/go/http://me:pw@host/x",
	} {
		if got := maskUser(in); got != want {
			t.Errorf("%q masked: %q, want %q", in, got, want)
		}
	}
}

// FuzzFindRequest searches in memories that are made up, and in one that was
// recorded from a stuck worker and tampered with.
func FuzzFindRequest(f *testing.F) {
	f.Add(requestImage("GET /spin?w=0 HTTP/1.1"), uint16(0), uint64(0), false)
	f.Add(requestImage("OPTIONS http://a:b@c/?d HTTP/1.0"), uint16(0x1300), uint64(imageBase), false)
	f.Add(requestImage(strings.Repeat("G", 3000)), uint16(0x2000), ^uint64(0), false)
	recorded := loadRequest(f)
	f.Add([]byte{}, uint16(0), uint64(0), true)
	for i := range recorded.Windows {
		f.Add([]byte{byte(i), 0, 8, 0, byte(i), 0, 16, 0, 0, 0, 0xff, 0xff}, uint16(0), uint64(0), true)
	}
	f.Fuzz(func(t *testing.T, image []byte, at uint16, word uint64, tampered bool) {
		if len(image) > 64<<10 {
			return
		}
		var r Request
		var ok bool
		var reads int
		if tampered {
			m := *recorded
			m.patch(image)
			r, ok = m.find()
			reads = m.reads
		} else {
			image = append([]byte(nil), image...)
			if i := int(at) &^ 7; i+8 <= len(image) {
				binary.LittleEndian.PutUint64(image[i:], word)
			}
			r, ok, reads = search(image)
		}
		if reads > maxReads {
			t.Fatalf("%d reads", reads)
		}
		if !ok {
			return
		}
		for _, text := range []string{r.Line(true), r.Line(false), r.Host, r.URI, r.Upstream.Name, r.Upstream.File, r.Upstream.Peer, r.Upstream.PeerName} {
			if len(text) > 3*maxText || !printable([]byte(text)) {
				t.Fatalf("text %q", text)
			}
		}
		if r.HasQuery && len(r.Query) > 8 && strings.Contains(r.Line(false), "?"+r.Query) {
			t.Fatalf("query %q shows in %q", r.Query, r.Line(false))
		}
	})
}
