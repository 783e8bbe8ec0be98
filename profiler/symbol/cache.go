package symbol

import (
	"container/list"
	"sync"
	"time"
	"weak"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// Cache holds images, the most recently used ones. Proxies that reload often,
// and many workers of one program, share one image. Safe for concurrent use.
type Cache struct {
	mu      sync.Mutex
	max     int
	order   *list.List // of *cached, most recent first
	byFile  map[fileKey]*list.Element
	byBuild map[edition]*list.Element
}

// fileKey tells files apart without opening them.
type fileKey struct {
	dev, inode uint64
	mtime      int64 // nanoseconds
	size       int64
}

// edition tells copies of one file; the size keeps apart what was stripped.
type edition struct {
	id   string
	size int64
}

type cached struct {
	image   *Image // nil: whoever still uses it holds it
	weak    weak.Pointer[Image]
	edition edition
	files   []fileKey
	asked   time.Time // for it, last
}

// filesPerImage bounds the known copies of one build.
const filesPerImage = 64

// NewCache returns a cache of at most max images.
func NewCache(max int) *Cache {
	return &Cache{
		max: max, order: list.New(),
		byFile: map[fileKey]*list.Element{}, byBuild: map[edition]*list.Element{},
	}
}

// Open returns the image behind a mapping of a process. The file is reached
// through the process, so that deleted and replaced files and other mount
// namespaces do not matter. The vDSO is read from memory. A mapping without a
// file is an error.
func (c *Cache) Open(pid int, m procmem.Mapping) (*Image, error) {
	if m.Path == vdsoPath {
		return c.openVDSO(pid, m)
	}
	f, key, err := openMapped(pid, m)
	if err != nil {
		return nil, err
	}
	if image := c.find(key); image != nil {
		f.Close()
		return image, nil
	}
	image, err := newImage(m.Path, f, key.size)
	if err != nil {
		f.Close()
		return nil, err
	}
	image.debug = openDebug(pid, image)
	return c.add(key, image), nil
}

func (c *Cache) find(key fileKey) *Image {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byFile[key]
	if !ok {
		return nil
	}
	return c.use(e)
}

// use returns the image of an entry as the most recently used one. An image
// that is gone takes its entry with it, and is nil.
func (c *Cache) use(e *list.Element) *Image {
	held := e.Value.(*cached)
	if held.image == nil {
		held.image = held.weak.Value()
	}
	if held.image == nil {
		c.drop(e)
		return nil
	}
	held.asked = time.Now()
	c.order.MoveToFront(e)
	return held.image
}

// Expire lets go of the images that nobody has asked for during so long. Those
// that somebody still uses are found all the same; of the others nothing stays:
// a host that gets a new version of its proxies every day would else keep the
// symbols of all, and the deleted files.
func (c *Cache) Expire(after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var next *list.Element
	for e := c.order.Front(); e != nil; e = next {
		next = e.Next()
		held := e.Value.(*cached)
		if time.Since(held.asked) >= after {
			held.image = nil
		}
		if held.image == nil && held.weak.Value() == nil {
			c.drop(e)
		}
	}
}

// add stores an image, or returns the one of the same build that is there.
func (c *Cache) add(key fileKey, image *Image) *Image {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byFile[key]; ok {
		if known := c.use(e); known != nil {
			return known
		}
	}
	if e, ok := c.byBuild[image.edition()]; ok && image.buildID != "" {
		if known := c.use(e); known != nil {
			if held := e.Value.(*cached); len(held.files) < filesPerImage {
				held.files = append(held.files, key)
				c.byFile[key] = e
			}
			return known
		}
	}
	e := c.order.PushFront(&cached{image: image, weak: weak.Make(image), edition: image.edition(), files: []fileKey{key}, asked: time.Now()})
	c.byFile[key] = e
	if image.buildID != "" {
		c.byBuild[image.edition()] = e
	}
	for c.order.Len() > c.max && c.order.Len() > 1 {
		c.drop(c.order.Back())
	}
	return image
}

// Len returns how many images the cache knows.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

func (i *Image) edition() edition { return edition{i.buildID, i.file.size} }

func (c *Cache) drop(e *list.Element) {
	held := c.order.Remove(e).(*cached)
	for _, key := range held.files {
		delete(c.byFile, key)
	}
	if held.edition.id != "" {
		delete(c.byBuild, held.edition)
	}
}

// Symbol finds an exported symbol in a process, in its main executable first,
// and returns its address in the process and its size.
func (c *Cache) Symbol(pid int, maps procmem.Maps, name string) (addr, size uint64, ok bool) {
	for _, m := range executables(pid, maps) {
		if addr, size, ok := c.symbolIn(pid, m, name); ok {
			return addr, size, true
		}
	}
	return 0, 0, false
}

// ProgramSymbol is Symbol for the main executable only: a name that it does not
// have costs no look at the libraries.
func (c *Cache) ProgramSymbol(pid int, maps procmem.Maps, name string) (addr, size uint64, ok bool) {
	exe, err := procmem.ExePath(pid)
	if err != nil {
		return 0, 0, false
	}
	for _, m := range maps {
		if m.Exec && m.Inode != 0 && m.Path == exe {
			return c.symbolIn(pid, m, name)
		}
	}
	return 0, 0, false
}

func (c *Cache) symbolIn(pid int, m procmem.Mapping, name string) (addr, size uint64, ok bool) {
	image, err := c.Open(pid, m)
	if err != nil {
		return 0, 0, false
	}
	value, size, found := image.Lookup(name)
	bias, placed := image.Bias(m)
	return value + bias, size, found && placed
}

// executables returns one executable mapping for each file, that of the main
// program first.
func executables(pid int, maps procmem.Maps) []procmem.Mapping {
	type id struct {
		dev   string
		inode uint64
	}
	exe, _ := procmem.ExePath(pid)
	seen := map[id]bool{}
	var first, rest []procmem.Mapping
	for _, m := range maps {
		if !m.Exec || m.Inode == 0 || seen[id{m.Dev, m.Inode}] {
			continue
		}
		seen[id{m.Dev, m.Inode}] = true
		if m.Path == exe {
			first = append(first, m)
		} else {
			rest = append(rest, m)
		}
	}
	return append(first, rest...)
}
