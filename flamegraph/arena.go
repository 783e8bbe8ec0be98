package flamegraph

const (
	chunkBits  = 18
	chunkWords = 1 << chunkBits
	// maxDepth is the most frames that are kept of one stack. Deeper ones are
	// beyond what browsers can zoom into: the page's library recurses. It must fit
	// into a chunk.
	maxDepth = 2048
	// maxWords keeps offsets within 32 bits.
	maxWords = 1 << 32
)

// arena stores short runs of numbers without a header each. It grows by
// whole chunks, so little is copied and little garbage is left.
type arena struct {
	chunks [][]uint32
}

// put stores a run of at most maxDepth numbers and returns its place; false
// when the arena is full.
func (a *arena) put(run []uint32) (uint32, bool) {
	last := len(a.chunks) - 1
	if last < 0 || len(a.chunks[last])+len(run) > chunkWords {
		if (len(a.chunks)+1)*chunkWords > maxWords {
			return 0, false
		}
		a.chunks = append(a.chunks, nil)
		if last++; last > 0 { // a small profile has one chunk, no larger than it
			a.chunks[last] = make([]uint32, 0, chunkWords)
		}
	}
	at := last<<chunkBits | len(a.chunks[last])
	a.chunks[last] = append(a.chunks[last], run...)
	return uint32(at), true
}

func (a *arena) get(at uint32, n uint16) []uint32 {
	if n == 0 {
		return nil
	}
	start := at & (chunkWords - 1)
	end := start + uint32(n)
	return a.chunks[at>>chunkBits][start:end:end]
}

// renumber replaces every number n by to[n].
func (a *arena) renumber(to []uint32) {
	for _, c := range a.chunks {
		for i, n := range c {
			c[i] = to[n]
		}
	}
}
