//go:build ignore
/* SPDX-License-Identifier: (MIT OR GPL-2.0) */
/* The sampler: on each tick of a cpu-clock event, if the thread on this CPU is
 * watched, copy what the agent needs to understand it later. It copies and
 * interprets nothing. Kernel floor: 5.8 (ring buffer). */
#include "include/kernel.h"
#include "include/event.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "include/maps.h"
#include "include/namespace.h"
#include "include/regs_x86.h"
#include "include/stack.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

static __always_inline __u64 word(const __u8 *block, __u32 size, __u32 offset)
{
	__u64 v = 0;

	if (offset < size - 8)
		bpf_probe_read_kernel(&v, sizeof(v), block + offset);
	return v;
}

/* The window of the Lua stack ends above the highest slot that anything points
 * to: which of them is the frame's base is for the agent to find out. */
static __always_inline void copy_lua(struct record *r, const struct watch *w, __u64 rdx)
{
	__u32 n = w->lua_global_size;
	__u64 l = 0, high, low, stack, max, v;

	if (!w->lua_global || n > LUA_GLOBAL_MAX)
		return;
	if (bpf_probe_read_user(r->lua_global, n, (void *)(w->lua_global + w->lua_global_offset)))
		return;
	r->h.lua_global_addr = w->lua_global + w->lua_global_offset;
	r->h.lua_global_len = n;
	if (bpf_probe_read_user(&l, sizeof(l), (void *)(w->lua_global + w->lua_cur_l)) || !l)
		return;
	r->h.lua_state_addr = l;
	if (bpf_probe_read_user(r->lua_state, LUA_STATE_SIZE, (void *)l))
		return;
	r->h.lua_state_len = LUA_STATE_SIZE;
	stack = word(r->lua_state, LUA_STATE_SIZE, w->lua_stack);
	max = word(r->lua_state, LUA_STATE_SIZE, w->lua_max_stack);
	high = word(r->lua_state, LUA_STATE_SIZE, w->lua_base);
	v = word(r->lua_state, LUA_STATE_SIZE, w->lua_top);
	if (v > high && v <= max)
		high = v;
	if (rdx > high && rdx <= max)
		high = rdx;
	if (!bpf_probe_read_user(&v, sizeof(v), (void *)(w->lua_global + w->lua_jit_base)) && v > high && v <= max)
		high = v;
	if (high < stack || high > max)
		return;
	high = high + LUA_ABOVE > max ? max : high + LUA_ABOVE;
	low = high - stack > LUA_STACK_MOST ? high - LUA_STACK_MOST : stack;
	high -= low;
	high &= LUA_STACK_MAX - 1;
	r->h.lua_stack_addr = low;
	if (!bpf_probe_read_user(r->stacks, high, (void *)low))
		r->h.lua_stack_len = high;
}

/* Whether the progress word stands still since the last sample. */
static __always_inline int read_progress(struct header *h, struct watch *w)
{
	__u32 n = w->progress_size;
	int still;

	if (!w->progress_addr || (n != 4 && n != 8) ||
	    bpf_probe_read_user(&h->progress, n == 4 ? 4 : 8, (void *)w->progress_addr)) {
		count(COUNTER_NO_WORD);
		return 0;
	}
	h->progress_ok = 1;
	still = h->progress == w->last_progress;
	w->last_progress = h->progress;
	return still;
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	struct bpf_pidns_info ns = {};
	struct task_struct *task;
	struct pt_regs user = {};
	struct watch *w;
	struct record *r;
	__u64 end, size, at;
	int still;

	if (ids_here(&ns))
		return 0; /* not in our pid namespace */
	w = bpf_map_lookup_elem(&watched, &ns.pid);
	if (!w || (w->period && w->period != ctx->sample_period))
		return 0;
	r = only(&scratch);
	if (!r)
		return 0;
	count(COUNTER_TAKEN);
	__builtin_memset(&r->h, 0, sizeof(r->h));
	task = (struct task_struct *)bpf_get_current_task();
	r->h.when = bpf_ktime_get_ns();
	r->h.weight = ctx->sample_period;
	r->h.cpu = bpf_get_smp_processor_id();
	r->h.pid = ns.tgid;
	r->h.tid = ns.pid;
	r->h.cpu_time = BPF_CORE_READ(task, se.sum_exec_runtime);
	r->h.voluntary = BPF_CORE_READ(task, nvcsw);
	r->h.involuntary = BPF_CORE_READ(task, nivcsw);
	if (bpf_core_field_exists(task->sched_info.run_delay))
		r->h.run_delay = BPF_CORE_READ(task, sched_info.run_delay);
	still = read_progress(&r->h, w);
	if (w->crumb_addr && !bpf_probe_read_user(r->h.crumb, CRUMB_SIZE, (void *)w->crumb_addr))
		r->h.crumb_len = CRUMB_SIZE;
	if (user_regs(ctx, task, &user, &r->h))
		count(COUNTER_NO_REGS);
	copy_regs(&r->h, &user);

	size = sizeof(r->h);
	/* A still word may be the start of a stall: do not lose its first stacks. */
	if (still || w->full_every <= 1 || ++w->count >= w->full_every) {
		w->count = 0;
		r->h.full = 1;
		r->h.kernel_len = r->h.in_kernel ? bpf_get_stack(ctx, r->kernel, sizeof(r->kernel), 0) : 0;
		end = w->stack_end || ns.pid != ns.tgid ? w->stack_end : BPF_CORE_READ(task, mm, start_stack);
		copy_lua(r, w, user.dx);
		r->h.stack_addr = user.sp;
		at = r->h.lua_stack_len & (LUA_STACK_MAX - 1);
		r->h.stack_len = copy_user(r->stacks + at, user.sp, end > user.sp ? end - user.sp : STACK_MAX);
		r->h.stack_cut = r->h.stack_len != end - user.sp;
		if (!r->h.stack_len)
			count(COUNTER_NO_STACK);
		else if (w->switches || r->h.stack_cut)
			send_further(&r->h, w, user.bp, end);
		size = __builtin_offsetof(struct record, stacks) + at + (r->h.stack_len & (2 * STACK_MAX - 1));
		if (size > sizeof(*r))
			size = sizeof(*r);
	}
	/* Nobody waits for the record of a worker that moves on, unless all of its
	 * windows are wanted soon: what they lack is read from memory that changes. */
	still = still || (w->full_every <= 1 && !w->patient);
	if (bpf_ringbuf_output(&ring, r, size, still ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP)) {
		count(COUNTER_LOST_RING);
		add_one(&lost, ns.pid);
	}
	return 0;
}
