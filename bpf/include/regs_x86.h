/* SPDX-License-Identifier: (MIT OR GPL-2.0) */
/* The registers of x86-64: all that the sampler knows of an architecture. */
#ifndef SPINGUARD_REGS_X86_H
#define SPINGUARD_REGS_X86_H

/* The user registers: those of the interrupt if it hit user code, else those
 * that the kernel saved when the thread entered it. */
static __always_inline int user_regs(struct bpf_perf_event_data *ctx, struct task_struct *task, struct pt_regs *out,
				     struct header *h)
{
	void *saved;

	h->in_kernel = (ctx->regs.cs & 3) != 3;
	if (h->in_kernel) {
		if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
			saved = (void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
		else
			saved = BPF_CORE_READ(task, stack) + thread_size - sizeof(struct pt_regs);
		if (bpf_probe_read_kernel(out, sizeof(*out), saved))
			return -1;
		return (out->cs & 3) == 3 ? 0 : -1;
	}
	*out = ctx->regs;
	out->orig_ax = -1;
	return 0;
}

static __always_inline void copy_regs(struct header *h, const struct pt_regs *u)
{
	h->regs[0] = u->ax; h->regs[1] = u->dx; h->regs[2] = u->cx; h->regs[3] = u->bx;
	h->regs[4] = u->si; h->regs[5] = u->di; h->regs[6] = u->bp; h->regs[7] = u->sp;
	h->regs[8] = u->r8; h->regs[9] = u->r9; h->regs[10] = u->r10; h->regs[11] = u->r11;
	h->regs[12] = u->r12; h->regs[13] = u->r13; h->regs[14] = u->r14; h->regs[15] = u->r15;
	h->regs[16] = u->ip;
	h->syscall = h->in_kernel ? (__s64)u->orig_ax : -1;
}

#endif
