package luajit

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/spinguard/spinguard/profiler/procmem"
	"github.com/spinguard/spinguard/profiler/stack"
)

// patched is a recorded image with words of it replaced.
type patched struct {
	*image
	words map[uint64]uint64
}

func (p patched) ReadMemory(addr uint64, buf []byte) error {
	if err := p.image.ReadMemory(addr, buf); err != nil {
		return err
	}
	for at, w := range p.words {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], w)
		for i, v := range b {
			if off := at + uint64(i) - addr; off < uint64(len(buf)) {
				buf[off] = v
			}
		}
	}
	return nil
}

// noise answers every read that the image can't with numbers, or with
// addresses of the image: memory that always has one more pointer.
type noise struct {
	procmem.Memory
	salt  byte
	near  []procmem.Window
	fresh bool // nothing of the image but the interpreter's code
	lo    uint64
	hi    uint64
}

func (n noise) ReadMemory(addr uint64, buf []byte) error {
	code := addr >= n.lo && addr < n.hi
	if (!n.fresh || code) && n.Memory.ReadMemory(addr, buf) == nil {
		return nil
	}
	for i := 0; i < len(buf); i += 8 {
		h := mix((addr+uint64(i))&^7 ^ uint64(n.salt)<<56)
		word := h
		switch w := n.near[h>>8%uint64(len(n.near))]; h & 7 {
		case 0, 1, 2:
			word = w.Addr + h>>16%uint64(len(w.Data))&^7
		case 3:
			word = uint64(tagged(int(h>>8&15), w.Addr&^7))
		case 4:
			word = h & 0xff
		case 5:
			word = 0x0808080808080808
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], word)
		copy(buf[i:], b[:])
	}
	return nil
}

// counted counts reads.
type counted struct {
	procmem.Memory
	reads *int
}

func (c counted) ReadMemory(addr uint64, buf []byte) error {
	*c.reads++
	return c.Memory.ReadMemory(addr, buf)
}

// mix is a fixed hash, so that a finding can be repeated.
func mix(v uint64) uint64 {
	v ^= v >> 30
	v *= 0xbf58476d1ce4e5b9
	v ^= v >> 27
	v *= 0x94d049bb133111eb
	return v ^ v>>31
}

// FuzzWalk walks recorded machines whose memory was tampered with. Whatever
// the memory holds: no panic, no endless walk, no more frames than allowed.
func FuzzWalk(f *testing.F) {
	var images []*image
	for _, c := range recorded {
		images = append(images, loadImage(f, "testdata/images/"+c.script+"-"+c.mode+".gob.gz"))
	}
	found := map[*image]*VM{}
	for _, m := range images {
		vms, err := Find(m, m.Maps, nil)
		if err != nil {
			f.Fatal(err)
		}
		found[m] = vms[0]
	}
	for i := range images {
		f.Add(byte(i), byte(0), []byte{})
		f.Add(byte(i), byte(1), []byte("\x10\x00\x20\x00\x08\x00\x00\x00\x00\x00\x00\x00"))
		f.Add(byte(i), byte(2), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})
	}
	f.Fuzz(func(t *testing.T, which, how byte, data []byte) {
		m := images[int(which)%len(images)]
		vm := &VM{
			layout: found[m].layout, global: found[m].global, main: found[m].main, live: found[m].live,
			protos: newProtoCache(), names: &nameIndex{}, traces: &traceTable{},
		}
		regs := m.Registers
		var mem procmem.Memory = patched{m, patches(m, data, &regs)}
		switch how % 4 {
		case 1:
			mem = noise{Memory: mem, salt: how, near: m.Windows}
		case 2:
			mem = noise{Memory: mem, salt: how, near: m.Windows, fresh: true, lo: vm.global, hi: vm.global + 0x2000}
		case 3:
			again, _ := Find(mem, m.Maps, nil)
			for _, vm := range again {
				checkWalk(t, vm, mem, &regs)
			}
		}
		checkWalk(t, vm, mem, &regs)
		checkWalk(t, vm, mem, nil)
		vm.live = reader{mem: mem, strLen: vm.live.strLen, budget: &budget{walkBudget}}
		vm.Code(nil, regs.PC())
	})
}

// patches turns the input into replaced words: where, relative to a window,
// and what. The first window stands for the registers.
func patches(m *image, data []byte, regs *stack.Registers) map[uint64]uint64 {
	const most = 64
	words := map[uint64]uint64{}
	for ; len(data) >= 12 && len(words) < most; data = data[12:] {
		window, off := int(data[0])|int(data[1])<<8, uint64(data[2])|uint64(data[3])<<8
		word := binary.LittleEndian.Uint64(data[4:])
		if word>>48 == 0xffff { // an address: of a window, not of the input
			w := m.Windows[int(word&0xffff)%len(m.Windows)]
			word = w.Addr + word>>16&0xffff
		}
		if window == 0 {
			regs.Set(int(off%17), word)
			continue
		}
		w := m.Windows[window%len(m.Windows)]
		words[w.Addr+off%uint64(len(w.Data))&^7] = word
	}
	return words
}

func checkWalk(t *testing.T, vm *VM, mem procmem.Memory, regs *stack.Registers) {
	began, reads := time.Now(), 0
	w, err := vm.Walk(counted{mem, &reads}, regs)
	if reads > walkBudget {
		t.Fatalf("%d reads", reads)
	}
	if d := time.Since(began); d > 500*time.Millisecond {
		t.Fatalf("took %v: %s", d, w.Truncated)
	}
	if err != nil {
		return
	}
	frames := 0
	for _, s := range w.Segments {
		frames += len(s)
		for _, f := range s {
			if len(f.Values) > maxValues || len(f.Function) > 4*maxString || len(f.File) > 4*maxString {
				t.Fatalf("oversized frame: %d values, names of %d and %d bytes", len(f.Values), len(f.Function), len(f.File))
			}
		}
	}
	if frames > maxFrames || len(w.Segments) != len(w.CFA) || len(w.Segments) > maxSegments+2 {
		t.Fatalf("%d frames, %d segments, %d CFAs", frames, len(w.Segments), len(w.CFA))
	}
}
