package main

import (
	"slices"
	"time"
)

// percentile returns the least value that p percent of all do not exceed.
func percentile(list []time.Duration, p int) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[max(0, (len(sorted)*p+99)/100-1)].Round(time.Millisecond)
}

func median(list []time.Duration) time.Duration { return percentile(list, 50) }
func least(list []time.Duration) time.Duration  { return percentile(list, 0) }
func most(list []time.Duration) time.Duration   { return percentile(list, 100) }
