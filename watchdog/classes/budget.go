package classes

import "time"

// Budget follows the CPU time of the requests of one worker. A request is
// charged with its samples only, so short ones may go unseen.
type Budget struct {
	used map[uint64]time.Duration
	told map[uint64]bool
	ring []uint64 // in the order in which they came
}

const requestsMax = 256 // followed at once

// Charge adds a sample to a request and says whether that took it over the
// limit; it says so once.
func (b *Budget) Charge(request uint64, cpu, limit time.Duration) (used time.Duration, over bool) {
	if b.used == nil {
		b.used, b.told = map[uint64]time.Duration{}, map[uint64]bool{}
	}
	if _, ok := b.used[request]; !ok {
		if len(b.ring) >= requestsMax {
			delete(b.used, b.ring[0])
			delete(b.told, b.ring[0])
			b.ring = append(b.ring[:0], b.ring[1:]...)
		}
		b.ring = append(b.ring, request)
	}
	b.used[request] += cpu
	used = b.used[request]
	if used <= limit || b.told[request] {
		return used, false
	}
	b.told[request] = true
	return used, true
}
