/* SPDX-License-Identifier: (MIT OR GPL-2.0) */
/* The sampler's maps, and what the loader sets before it loads. */
#ifndef SPINGUARD_MAPS_H
#define SPINGUARD_MAPS_H

/* The agent's pid namespace, so that pids mean the same on both sides. */
const volatile __u64 ns_dev;
const volatile __u64 ns_ino;
/* Size of a kernel stack, for kernels without bpf_task_pt_regs (before 5.15):
 * there the registers lie at its end. */
const volatile __u64 thread_size = 16384;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct watch);
} watched SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} ring SEC(".maps");

/* A record is far bigger than a BPF stack. Only this program uses the scratch,
 * and timer interrupts of one CPU do not nest. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct record);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct further);
} scratch_further SEC(".maps");

/* Samples of each watched thread that were lost since the ring was full. It is
 * no part of struct watch, which the agent overwrites. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTER_MAX);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* The only value of a map that has one. */
static __always_inline void *only(void *map)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(map, &zero);
}

static __always_inline void add_one(void *map, __u32 key)
{
	__u64 *n = bpf_map_lookup_elem(map, &key);

	if (n)
		*n += 1;
}

static __always_inline void count(__u32 which)
{
	add_one(&counters, which);
}

/* Never read: it makes bpf2go emit the Go types. */
const enum counter *unused_counter __attribute__((unused));
const enum kind *unused_kind __attribute__((unused));

#endif
