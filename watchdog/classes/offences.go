package classes

import "time"

// offencesMax bounds the classes whose offences are counted at once.
const offencesMax = 512

// Offences counts requests over their budget by class, within a sliding time.
// The zero value is ready.
type Offences struct {
	byKey map[Key]*offender
}

type offender struct {
	at   []time.Duration // of the latest offences, oldest first
	told time.Duration   // when the class was reported; 0: never
}

// Add notes an offence now, a monotonic time above 0, and says whether it is
// the most-th of its class within that time. A class is reported once in that
// time.
func (o *Offences) Add(k Key, now, within time.Duration, most int) bool {
	if o.byKey == nil {
		o.byKey = map[Key]*offender{}
	}
	c := o.byKey[k]
	if c == nil {
		o.prune(now, within)
		c = &offender{}
		o.byKey[k] = c
	}
	c.at = append(c.at, now)
	c.at = c.at[max(0, len(c.at)-most):]
	if len(c.at) < most || now-c.at[0] > within || c.told != 0 && now-c.told < within {
		return false
	}
	c.told, c.at = now, c.at[:0]
	return true
}

// prune makes room for one class more: without those that were quiet, or
// without all, since classes come from clients.
func (o *Offences) prune(now, within time.Duration) {
	if len(o.byKey) < offencesMax {
		return
	}
	for k, c := range o.byKey {
		if len(c.at) == 0 || now-c.at[len(c.at)-1] > within {
			delete(o.byKey, k)
		}
	}
	if len(o.byKey) >= offencesMax {
		clear(o.byKey)
	}
}
