package proxy

import (
	"encoding/binary"
	"fmt"
	"os"
	"sort"
	"strconv"

	"github.com/spinguard/spinguard/profiler/procmem"
)

// haproxyThread is one event loop.
type haproxyThread struct {
	index, tid int
	progress   Progress
}

const (
	maxHAThreads = 4096
	maxActivity  = 4 << 20
	settleScans  = 10
	cacheLine    = 64 // the per-thread structures are aligned to it
)

// mapThreads gives each thread its slot of the activity array. Threads are
// started in the order of their numbers, the first being the process itself.
func (h *haproxyProcess) mapThreads(tids []int) []haproxyThread {
	addr, activity := h.array("activity")
	_, info := h.array("ha_thread_info")
	if activity == nil || len(tids) == 0 || len(tids) > maxHAThreads {
		return nil
	}
	groups, _ := h.addr("ha_tgroup_info")
	n, stride := threadSlots(info, groups, groups+h.exe.symbols["ha_tgroup_info"].size)
	slot := len(activity)
	switch {
	case stride > 0 && n > 0 && len(info)/stride > 0:
		slot = len(activity) / (len(info) / stride)
	case len(tids) > 1:
		slot, n = slotByExtent(activity, len(tids)), len(tids)
	}
	if n == 0 {
		n = 1
	}
	if slot == 0 || len(tids) < n || n*slot > len(activity) {
		return nil
	}
	word := loopCounter(activity, slot, n)
	if h.mapped++; word < 0 || word > 0 && h.mapped < settleScans {
		// The other counters move within the first turn, before it is counted.
		return nil
	}
	threads := make([]haproxyThread, n)
	for i, tid := range inStartOrder(h.pid, tids)[:n] {
		threads[i] = haproxyThread{index: i, tid: tid, progress: Progress{
			Addr: addr + uint64(i*slot+word), Size: 4, Name: fmt.Sprintf("activity[%d]+%d", i, word),
		}}
	}
	return threads
}

// array reads one exported array whole.
func (h *haproxyProcess) array(name string) (addr uint64, data []byte) {
	s, ok := h.exe.symbols[name]
	if !ok || s.size == 0 || s.size > maxActivity {
		return 0, nil
	}
	data = make([]byte, s.size)
	if h.mem.ReadMemory(s.value+h.bias, data) != nil {
		return 0, nil
	}
	return s.value + h.bias, data
}

// threadSlots finds how many threads are set up and how far apart their
// entries in ha_thread_info lie: each holds a pointer to its thread group. Before
// 2.5 there were no groups; then the number is 0.
func threadSlots(info []byte, low, high uint64) (n, stride int) {
	var at []int
	for i := 0; i+8 <= len(info); i += 8 {
		if p := binary.LittleEndian.Uint64(info[i:]); low != 0 && p >= low && p < high {
			at = append(at, i)
		}
	}
	switch len(at) {
	case 0:
		return 0, 0
	case 1:
		return 1, len(info)
	}
	stride = at[1] - at[0]
	for i := range at {
		if at[i] != at[0]+i*stride {
			return 0, 0
		}
	}
	if len(info)%stride != 0 {
		return 0, 0
	}
	return len(at), stride
}

// slotByExtent finds the stride of the activity array from how far it is
// filled: the last counter in use lies in the last thread's slot.
func slotByExtent(activity []byte, threads int) int {
	end := len(activity)
	for end > 0 && activity[end-1] == 0 {
		end--
	}
	for stride := cacheLine; stride <= len(activity); stride += cacheLine {
		if len(activity)%stride == 0 && (threads-1)*stride < end && end <= threads*stride {
			return stride
		}
	}
	return 0
}

// loopCounter finds the counter of loop turns in a slot: the first word that
// any thread has set, since it comes before the others. -1: nothing is set yet.
func loopCounter(activity []byte, slot, n int) int {
	for word := 0; word+4 <= slot; word += 4 {
		for i := range n {
			if binary.LittleEndian.Uint32(activity[i*slot+word:]) != 0 {
				return word
			}
		}
	}
	return -1
}

// inStartOrder sorts thread ids by the time their thread was started, so that
// thread ids that wrapped around do not matter.
func inStartOrder(pid int, tids []int) []int {
	started := make(map[int]uint64, len(tids))
	for _, tid := range tids {
		stat, err := os.ReadFile(procPath(pid, "task/"+strconv.Itoa(tid)+"/stat"))
		if err != nil {
			continue
		}
		if f := procmem.AfterComm(stat); len(f) > 19 {
			started[tid], _ = strconv.ParseUint(string(f[19]), 10, 64)
		}
	}
	out := append([]int(nil), tids...)
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if (a == pid) != (b == pid) {
			return a == pid
		}
		if started[a] != started[b] {
			return started[a] < started[b]
		}
		return a < b
	})
	return out
}
