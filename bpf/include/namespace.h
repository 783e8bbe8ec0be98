#ifndef NAMESPACE_H
#define NAMESPACE_H

/* upid_of is what the pid namespace of that level calls a thread. */
static __always_inline struct upid *upid_of(struct task_struct *task, __u32 level)
{
	void *pid = BPF_CORE_READ(task, thread_pid);

	return pid + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid);
}

/* ids_at gives the ids of a thread at that level, if it is below it and the
 * agent's namespace is there. */
static __always_inline int ids_at(struct task_struct *task, __u32 level, struct bpf_pidns_info *ids)
{
	struct upid *thread = upid_of(task, level), *process;

	if (BPF_CORE_READ(task, thread_pid, level) <= level || BPF_CORE_READ(thread, ns, ns.inum) != ns_ino)
		return -1;
	process = upid_of(BPF_CORE_READ(task, group_leader), level);
	ids->pid = BPF_CORE_READ(thread, nr);
	ids->tgid = BPF_CORE_READ(process, nr);
	return 0;
}

/* ids_here gives the ids of the thread on this CPU as the agent's pid namespace
 * has them; not 0: it is not there. The helper knows only threads whose own
 * namespace that is, and not those in containers below it. The agent itself may
 * be in up to three namespaces within each other; no loop, for old verifiers. */
static __always_inline int ids_here(struct bpf_pidns_info *ids)
{
	struct task_struct *task;

	if (!bpf_get_ns_current_pid_tgid(ns_dev, ns_ino, ids, sizeof(*ids)))
		return 0;
	task = (struct task_struct *)bpf_get_current_task();
	return ids_at(task, 0, ids) && ids_at(task, 1, ids) && ids_at(task, 2, ids) && ids_at(task, 3, ids);
}

#endif
