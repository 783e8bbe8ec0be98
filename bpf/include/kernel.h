/* SPDX-License-Identifier: (MIT OR GPL-2.0) */
/* The few kernel types that the sampler reads. CO-RE relocates each field on
 * the running kernel, so only names matter here, not offsets. */
#ifndef SPINGUARD_KERNEL_H
#define SPINGUARD_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

/* Only asked whether the running kernel has the value. */
enum bpf_func_id {
	BPF_FUNC_task_pt_regs = 175,
};

struct bpf_pidns_info {
	__u32 pid;
	__u32 tgid;
};

/* User registers of x86-64 as the kernel saves them: this layout is ABI. */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

/* Context of a perf_event program: ABI, not relocated. */
struct bpf_perf_event_data {
	struct pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_entity {
	__u64 sum_exec_runtime;
};

struct sched_info {
	unsigned long long run_delay;
};

struct mm_struct {
	unsigned long start_stack;
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct {
	void *stack;
	struct sched_entity se;
	struct sched_info sched_info;
	struct mm_struct *mm;
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct task_struct *group_leader;
	struct pid *thread_pid;
};

#pragma clang attribute pop

#endif
