/* SPDX-License-Identifier: (MIT OR GPL-2.0) */
/* What the counter of connects reads of a socket, and its tables. CO-RE
 * relocates each field of the kernel's types. */
#ifndef SPINGUARD_SOCKET_H
#define SPINGUARD_SOCKET_H

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define ECONNRESET 104
#define ETIMEDOUT 110
#define ECONNREFUSED 111
#define EPIPE 32

/* States of TCP: ABI. */
enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT = 2,
	TCP_CLOSE = 7,
};

/* Context of a raw tracepoint: ABI. */
struct bpf_raw_tracepoint_args {
	__u64 args[3];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be16 skc_dport;
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	int sk_err;
};

#pragma clang attribute pop

/* Who connects where. IPv4 addresses are mapped into IPv6. */
struct peer {
	__u32 pid; /* of the process, in the agent's namespace */
	__u16 port;
	__u16 pad;
	__u8 addr[16];
};

/* What became of the connects since the program was attached. */
struct tally {
	__u64 begun;
	__u64 established;
	__u64 refused;
	__u64 timed_out;   /* by the kernel: no answer */
	__u64 unreachable; /* any other error */
	__u64 given_up;	   /* closed by the process before there was an answer */
	__u64 closed;	   /* of those established, whatever the reason */
	__u64 reset;	   /* of those closed */
	__u64 lost;	   /* of those closed: no answer any more */
};

#define PEERS_MAX 4096
#define OWNERS_MAX 1024
#define CONNECTIONS_MAX 32768
#define BPF_MAP_TYPE_LRU_HASH 9

volatile const __u64 ns_dev, ns_ino;

/* Processes whose connects are counted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OWNERS_MAX);
	__type(key, __u32);
	__type(value, __u8);
} owners SEC(".maps");

/* Sockets that are connecting or connected. The oldest are forgotten if there
 * are too many: their end is then not counted. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CONNECTIONS_MAX);
	__type(key, __u64);
	__type(value, struct peer);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PEERS_MAX);
	__type(key, struct peer);
	__type(value, struct tally);
} peers SEC(".maps");

/* Connects to peers that found no place in the table. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} untold SEC(".maps");

#endif
