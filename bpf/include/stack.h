/* SPDX-License-Identifier: (MIT OR GPL-2.0) */
/* How the native stack is copied: a window from the stack pointer on, and as
 * many further ones as it takes to its end. */
#ifndef SPINGUARD_STACK_H
#define SPINGUARD_STACK_H

/* A page that is not there fails the whole copy: then take what is nearer. */
static __always_inline __u64 copy_user(__u8 *to, __u64 from, __u64 len)
{
	__u64 page = PAGE - (from & (PAGE - 1));

	if (len > STACK_MAX)
		len = STACK_MAX;
	if (!bpf_probe_read_user(to, len, (void *)from))
		return len;
	if (page < len && !bpf_probe_read_user(to, page, (void *)from))
		return page;
	return 0;
}

/* Takes one step towards the end of the stack: follows frame pointers inside of
 * the last window, and sends the next one. What it knows is written to memory and
 * read again, so that the verifier finds all ways to a place alike: it would
 * walk hundreds of thousands of instructions otherwise. */
static __always_inline int step(const struct header *h, const struct watch *w, volatile struct further *x, __u64 end)
{
	__u64 at = x->addr, len = x->len, frame = x->frame;

	if (w->switches) {
		for (int i = 0; i < HOPS_MAX && frame - at < len; i++, frame = x->frame)
			if (bpf_probe_read_user((void *)&x->frame, sizeof(x->frame), (void *)frame))
				return 1;
		if (!frame || frame - at < len)
			return !frame;
		x->addr = frame & ~(__u64)(PAGE / 4 - 1); /* with a leaf that was interrupted below */
		x->len = PAGE;
	} else {
		at += len;
		if (at - h->stack_addr >= LEAF_SIDE && at < end - ROOT_SIDE)
			at = end - ROOT_SIDE;
		if (at >= end)
			return 1;
		x->addr = at;
		x->len = end - at;
	}
	if (x->count++ >= FURTHER_MAX)
		return 1;
	x->len = copy_user((__u8 *)x->stack, x->addr, x->len);
	len = x->len & (2 * STACK_MAX - 1);
	if (len)
		return len > STACK_MAX || bpf_ringbuf_output(&ring, (void *)x, FURTHER_HEAD + len, BPF_RB_NO_WAKEUP);
	x->len = PAGE - (x->addr & (PAGE - 1)); /* nobody has written to that page: a buffer on the stack */
	return 0;
}

/* The rest of the stack goes ahead in records of its own, as it is at this very
 * instant: what lies deeper, or where frame pointers lead to another stack. */
static __always_inline void send_further(const struct header *h, const struct watch *w, __u64 bp, __u64 end)
{
	struct further *x = only(&scratch_further);
	int i = 0;

	if (!x)
		return;
	x->kind = KIND_FURTHER;
	x->tid = h->tid;
	x->when = h->when;
	x->addr = h->stack_addr;
	x->len = h->stack_len;
	x->frame = bp;
	x->count = 0;
	/* The way back must be a jump: see loops_test.go. */
	do {
		if (step(h, w, x, end))
			return;
	} while (++i < STEPS_MAX);
}

#endif
