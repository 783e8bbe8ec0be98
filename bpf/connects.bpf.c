//go:build ignore
/* SPDX-License-Identifier: (MIT OR GPL-2.0) */
/* Counts what becomes of the TCP connects of watched processes, by remote
 * address. The kernel tells each change of a socket's state; a connect begins
 * in the process that asks for it and may end in any other context, so the
 * socket is remembered in between. Attached only while somebody asks. Kernel
 * floor: 5.8. */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "include/socket.h"
#include "include/namespace.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

static __always_inline struct tally *tally_of(struct peer *p)
{
	struct tally *t = bpf_map_lookup_elem(&peers, p);
	struct tally none = {};
	__u32 zero = 0;
	__u64 *n;

	if (t)
		return t;
	bpf_map_update_elem(&peers, p, &none, 1 /* unless another CPU did */);
	t = bpf_map_lookup_elem(&peers, p);
	if (t)
		return t;
	n = bpf_map_lookup_elem(&untold, &zero);
	if (n)
		*n += 1;
	return 0;
}

static __always_inline int read_peer(struct sock *sk, struct peer *p)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	__be16 port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	__be32 v4;

	p->port = __builtin_bswap16(port);
	if (family == AF_INET) {
		v4 = BPF_CORE_READ(sk, __sk_common.skc_daddr);
		p->addr[10] = p->addr[11] = 0xff;
		__builtin_memcpy(p->addr + 12, &v4, sizeof(v4));
		return 0;
	}
	if (family != AF_INET6)
		return -1;
	BPF_CORE_READ_INTO(&p->addr, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr8);
	return 0;
}

static __always_inline void begin(struct sock *sk, __u64 key)
{
	struct bpf_pidns_info ns = {};
	struct peer p = {};
	struct tally *t;

	if (ids_here(&ns))
		return; /* not in our pid namespace */
	if (!bpf_map_lookup_elem(&owners, &ns.tgid))
		return;
	p.pid = ns.tgid;
	if (read_peer(sk, &p))
		return;
	t = tally_of(&p);
	if (!t)
		return;
	__sync_fetch_and_add(&t->begun, 1);
	bpf_map_update_elem(&connections, &key, &p, 0);
}

/* Why a connect failed. The error is set before the state is. */
static __always_inline void fail(struct tally *t, int err)
{
	if (err == ECONNREFUSED)
		__sync_fetch_and_add(&t->refused, 1);
	else if (err == ETIMEDOUT)
		__sync_fetch_and_add(&t->timed_out, 1);
	else if (err)
		__sync_fetch_and_add(&t->unreachable, 1);
	else
		__sync_fetch_and_add(&t->given_up, 1);
}

static __always_inline void end(struct tally *t, int err)
{
	__sync_fetch_and_add(&t->closed, 1);
	if (err == ECONNRESET || err == EPIPE)
		__sync_fetch_and_add(&t->reset, 1);
	else if (err == ETIMEDOUT)
		__sync_fetch_and_add(&t->lost, 1);
}

SEC("raw_tracepoint/inet_sock_set_state")
int set_state(struct bpf_raw_tracepoint_args *ctx)
{
	struct sock *sk = (struct sock *)ctx->args[0];
	int before = (int)ctx->args[1], after = (int)ctx->args[2], err;
	__u64 key = ctx->args[0];
	struct peer *p, copy;
	struct tally *t;

	if (after == TCP_SYN_SENT) {
		if (BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP)
			begin(sk, key);
		return 0;
	}
	if (after != TCP_CLOSE && !(before == TCP_SYN_SENT && after == TCP_ESTABLISHED))
		return 0;
	p = bpf_map_lookup_elem(&connections, &key);
	if (!p)
		return 0; /* accepted, of somebody else, or older than this program */
	copy = *p;
	t = bpf_map_lookup_elem(&peers, &copy);
	if (after == TCP_ESTABLISHED) {
		if (t)
			__sync_fetch_and_add(&t->established, 1);
		return 0;
	}
	bpf_map_delete_elem(&connections, &key);
	err = BPF_CORE_READ(sk, sk_err);
	if (t && before == TCP_SYN_SENT)
		fail(t, err);
	else if (t)
		end(t, err);
	return 0;
}
