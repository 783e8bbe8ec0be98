/* SPDX-License-Identifier: (MIT OR GPL-2.0) */
/* What the sampler and the agent say to each other. bpf2go turns these structs
 * into Go; layout_test.go holds the two against each other. */
#ifndef SPINGUARD_EVENT_H
#define SPINGUARD_EVENT_H

#define STACK_MAX 16384
#define LUA_STACK_MAX 8192
#define LUA_STACK_MOST (LUA_STACK_MAX - 8) /* of it are used, so that a mask bounds the length for the verifier */
#define LUA_GLOBAL_MAX 512
#define LUA_STATE_SIZE 128
#define LUA_ABOVE 2048 /* bytes kept above the highest known slot: a frame has at most 250 slots */
#define CRUMB_SIZE 128
#define KERNEL_FRAMES 32
#define FURTHER_MAX 16 /* windows of one stack besides the first, and pages that are not there */
#define LEAF_SIDE (5 * STACK_MAX) /* of a deeper stack this much is copied ... */
#define ROOT_SIDE (4 * STACK_MAX) /* ... and this much from its end */
#define STEPS_MAX 24 /* on the way to the end of a stack ... */
#define HOPS_MAX 4   /* ... with so many frame pointers at most */
#define PAGE 4096

/* What to copy for one thread; written by the agent, keyed by thread id. */
struct watch {
	__u64 progress_addr;
	__u64 stack_end;    /* 0: of the first thread, where the kernel put its stack; else not known */
	__u64 crumb_addr;
	__u64 lua_global;   /* 0: no VM */
	__u64 period;       /* take only samples of this period in ns; 0: all */
	__u32 progress_size;
	__u32 full_every;   /* copy the windows each n-th sample; 1: always */
	__u32 lua_global_offset;
	__u32 lua_global_size;
	__u32 lua_cur_l;    /* offsets inside global_State */
	__u32 lua_jit_base;
	__u32 lua_base;     /* offsets inside lua_State */
	__u32 lua_top;
	__u32 lua_stack;
	__u32 lua_max_stack;
	/* The sampler's own notes. */
	__u64 last_progress;
	__u32 count;
	__u32 switches;     /* it runs on several stacks, with frame pointers that lead from one to the other */
	__u32 patient;      /* nobody waits for the samples in which it moves on, windows or not */
	__u32 unused;
};

/* The first word of each record of the ring. */
enum kind {
	KIND_SAMPLE,
	KIND_FURTHER,
};

struct header {
	__u32 kind;
	__u32 pad;
	__u64 when;
	__u64 weight;
	__u64 cpu_time;
	__u64 voluntary;
	__u64 involuntary;
	__u64 run_delay;    /* 0: this kernel does not count it */
	__u64 progress;
	__u64 lua_global_addr;
	__u64 lua_state_addr;
	__u64 lua_stack_addr;
	__u64 stack_addr;
	__s64 syscall;      /* orig_ax; means a system call only if the code before ip is one */
	__u32 pid;
	__u32 tid;
	__u32 cpu;
	__u32 progress_ok;
	__u32 in_kernel;
	__u32 full;
	__u32 stack_cut;
	__u32 stack_len;
	__u32 lua_global_len;
	__u32 lua_state_len;
	__u32 lua_stack_len;
	__s32 kernel_len;   /* bytes */
	__u32 crumb_len;
	__u32 unused;
	__u64 regs[17];     /* user registers in DWARF order */
	__u8 crumb[CRUMB_SIZE];
};

/* A record of the ring: the header, and if it is full, all that follows. The
 * stacks come last and close to each other, so that only their used parts are
 * sent: of most workers a few KiB. */
struct record {
	struct header h;
	__u64 kernel[KERNEL_FRAMES];
	__u8 lua_global[LUA_GLOBAL_MAX];
	__u8 lua_state[LUA_STATE_SIZE];
	__u8 stacks[LUA_STACK_MAX + STACK_MAX]; /* the Lua stack, then the native one */
};

/* What the first window does not hold of a stack. It comes before the record of
 * its sample, which is the next one of the same thread. */
struct further {
	__u32 kind;
	__u32 tid;
	__u64 when; /* of its sample */
	__u64 addr;
	__u64 len;
	__u64 frame; /* the sampler's own notes */
	__u64 count;
	__u8 stack[STACK_MAX];
};
#define FURTHER_HEAD __builtin_offsetof(struct further, stack)

enum counter {
	COUNTER_TAKEN,     /* samples of watched threads */
	COUNTER_LOST_RING, /* of these, lost: the ring was full */
	COUNTER_NO_REGS,   /* of these, without user registers */
	COUNTER_NO_STACK,  /* of these, stack could not be read */
	COUNTER_NO_WORD,   /* of these, progress word could not be read */
	COUNTER_MAX,
};

#endif
