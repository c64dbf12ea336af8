// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// A sample of the events of the page cache, and a count of all accesses, in the kernel.
//
// Each program looks whether its event touches a page of the sample, before anything is written.
// The layouts below name the fields that are read and nothing else; the loader finds where this
// kernel has them (CO-RE). `build` beside this file makes the object.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define CORE __attribute__((preserve_access_index))
#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline))
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, value) value *name
/* Whether this kernel has a field, and the value that it gives a name. */
#define HAS(field) __builtin_preserve_field_info(field, 2)
#define VALUE(type, name) __builtin_preserve_enum_value(*(type *)name, 1)

static void *(*const map_lookup)(void *, const void *) = (void *)1;
static long (*const map_update)(void *, const void *, const void *, u64) = (void *)2;
static long (*const map_delete)(void *, const void *) = (void *)3;
static u64 (*const ktime_ns)(void) = (void *)5;
static u32 (*const cpu_number)(void) = (void *)8;
static void *(*const ring_reserve)(void *, u64, u64) = (void *)131;
static void (*const ring_submit)(void *, u64) = (void *)132;
static struct task_struct *(*const current_task)(void) = (void *)158;

struct super_block { u32 s_dev; } CORE;
struct inode { unsigned long i_ino; struct super_block *i_sb; s64 i_size; } CORE;
struct address_space { struct inode *host; } CORE;
struct file { struct address_space *f_mapping; } CORE;
struct kiocb { struct file *ki_filp; s64 ki_pos; } CORE;
struct iov_iter { unsigned long count; } CORE;
struct vm_area_struct { struct file *vm_file; } CORE;
struct vm_fault { struct vm_area_struct *vma; unsigned long pgoff; } CORE;
struct kernfs_node { u64 id; } CORE;
struct cgroup { struct kernfs_node *kn; } CORE;
struct cgroup_subsys_state { struct cgroup *cgroup; } CORE;
struct css_set { struct cgroup_subsys_state *subsys[16]; } CORE;
struct task_struct { int pid; int tgid; struct css_set *cgroups; } CORE;
enum cgroup_subsys_id { memory_cgrp_id = 1 };
enum pageflags { PG_head = 1 };
struct folio { struct address_space *mapping; unsigned long index; u8 _folio_order; } CORE;
struct folio___number { unsigned long flags; unsigned long _flags_1; } CORE;
struct memdesc { unsigned long f; } CORE;
struct folio___memdesc { struct memdesc flags; } CORE;

/* Numbers of events; the same are in src/bpf/decode.rs. */
enum { READ, BEGIN, WRITE, FAULT, AROUND, ADD, DELETE, ADVISE, COUNT };

/* Set before the programs are loaded. */
const volatile u64 salt = 0;
/* Pages by which the last index of a read is beyond its last page. */
const volatile u64 beyond = 0;
/* Counts are by process, and not by memory cgroup. */
const volatile u64 by_process = 0;

/* Changed by the reader: what a CPU remembers of its task holds until the epoch is another; the mask
 * is the rate of the sample, less one. The same order is in src/bpf/mod.rs. */
volatile struct { u64 epoch, mask; } shared SEC(".data.shared") = {1, 63};

struct event {
	u64 time_ns, group, ino, first, second;
	u32 dev, pid, tid;
	u8 kind, order;
	u16 zero;
};

/* Accesses of a group, or a process, on a CPU, since it has this place. */
struct slot {
	u64 key, since, accesses;
};

#define SLOTS 128

struct per_cpu {
	/* The task's groups, or its process, when a place was found for it. */
	u64 whose, epoch, key, place;
	/* A read that may go on: further batches of it are counted already. */
	u64 mapping, first, last, task;
	/* The block that fault-around looked at last. */
	u64 around_task, around_first, around_last;
	u64 unused;
	struct slot slots[SLOTS];
};

struct fault {
	u64 mapping, page;
};

struct {
	NUMBER(type, 2);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct per_cpu);
} counts SEC(".maps");

struct {
	NUMBER(type, 27);
	NUMBER(max_entries, 1 << 16);
} ring SEC(".maps");

/* The page of a fault that fault-around did not settle, by thread: it is told of once more. */
struct {
	NUMBER(type, 9);
	NUMBER(max_entries, 4096);
	TYPE(key, u32);
	TYPE(value, struct fault);
} faulted SEC(".maps");

/* Events that found the ring full. */
struct {
	NUMBER(type, 6);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u64);
} lost SEC(".maps");

INLINE void note_lost(void)
{
	u32 zero = 0;
	u64 *n = map_lookup(&lost, &zero);
	if (n)
		*n += 1;
}

/* Whether one of these pages is of the sample. */
INLINE int touches(u64 ino, u64 first, u64 last)
{
	u64 unit = first >> 6, ahead = ((ino ^ salt) - unit) & shared.mask;
	return ahead == 0 || (unit + ahead) << 6 <= last;
}

INLINE u64 memory_group(struct task_struct *task)
{
	struct css_set *set = task->cgroups;
	u64 at = VALUE(enum cgroup_subsys_id, memory_cgrp_id);
	struct cgroup_subsys_state *state =
		*(struct cgroup_subsys_state **)((void *)__builtin_preserve_access_index(&set->subsys[0]) + at * 8);
	return state->cgroup->kn->id;
}

APART void find_place(struct per_cpu *cpu, u32 number)
{
	struct task_struct *task = current_task();
	u64 key = by_process ? (u32)task->tgid : memory_group(task);
	u64 place = key * 0x9e3779b97f4a7c15ull >> 57;
	struct slot *slot = &cpu->slots[place & (SLOTS - 1)];
	cpu->whose = by_process ? (u32)task->tgid : (u64)task->cgroups;
	cpu->epoch = shared.epoch;
	cpu->key = key;
	cpu->place = place;
	if (slot->key == key)
		return;
	if (slot->accesses) {
		struct event *e = ring_reserve(&ring, sizeof(*e), 0);
		if (e) {
			*e = (struct event){.time_ns = ktime_ns(), .group = slot->key, .ino = place,
					    .first = slot->accesses, .second = slot->since,
					    .dev = number, .kind = COUNT};
			ring_submit(e, 1);
		} else {
			note_lost();
		}
	}
	slot->key = key;
	slot->since = ktime_ns();
	slot->accesses = 0;
}

/* The counts of this CPU, at the place of the task that runs. */
INLINE struct per_cpu *counted(struct task_struct *task)
{
	u32 number = cpu_number();
	struct per_cpu *cpu = map_lookup(&counts, &number);
	if (!cpu)
		return 0;
	u64 whose = by_process ? (u32)task->tgid : (u64)task->cgroups;
	if (cpu->whose != whose || cpu->epoch != shared.epoch)
		find_place(cpu, number);
	return cpu;
}

INLINE void count(struct per_cpu *cpu, u64 pages)
{
	cpu->slots[cpu->place & (SLOTS - 1)].accesses += pages;
}

APART void tell(struct inode *inode, u8 kind, u8 order, u64 first, u64 second)
{
	struct event *e = ring_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		note_lost();
		return;
	}
	struct task_struct *task = current_task();
	e->time_ns = ktime_ns();
	e->group = memory_group(task);
	e->ino = inode->i_ino;
	e->first = first;
	e->second = second;
	e->dev = inode->i_sb->s_dev;
	e->pid = task->tgid;
	e->tid = task->pid;
	e->kind = kind;
	e->order = order;
	e->zero = 0;
	/* Nobody is woken: the reader looks by itself. */
	ring_submit(e, 1);
}

INLINE u64 pages_to_end(struct inode *inode, u64 first, u64 last)
{
	u64 end = ((u64)inode->i_size + 4095) >> 12;
	u64 behind = last + 1 < end ? last + 1 : end;
	return behind > first ? behind - first : 1;
}

INLINE int read_batch(struct address_space *mapping, u64 first, u64 last_index)
{
	struct inode *inode = mapping->host;
	u64 last = last_index - beyond;
	struct task_struct *task = current_task();
	struct per_cpu *cpu = counted(task);
	if ((s64)last < (s64)first)
		last = first;
	if (cpu) {
		int goes_on = cpu->last == last && cpu->mapping == (u64)mapping && cpu->task == (u64)task &&
			      first > cpu->first;
		if (goes_on) {
			cpu->first = first;
		} else if (last == first) {
			count(cpu, 1);
		} else {
			cpu->mapping = (u64)mapping;
			cpu->first = first;
			cpu->last = last;
			cpu->task = (u64)task;
			count(cpu, pages_to_end(inode, first, last));
		}
	}
	if (touches(inode->i_ino, first, last))
		tell(inode, READ, 0, first, last);
	return 0;
}

SEC("tp_btf/mm_filemap_get_pages") int read(u64 *args)
{
	return read_batch((struct address_space *)args[0], args[1], args[2]);
}

/* In the place of the event above, before Linux 6.12. */
SEC("fentry/filemap_read") int read_begin(u64 *args)
{
	struct kiocb *call = (struct kiocb *)args[0];
	struct inode *inode = call->ki_filp->f_mapping->host;
	u64 pos = call->ki_pos, bytes = ((struct iov_iter *)args[1])->count, size = inode->i_size;
	if (pos >= size || bytes == 0)
		return 0;
	if (bytes > size - pos)
		bytes = size - pos;
	u64 first = pos >> 12, last = (pos + bytes - 1) >> 12;
	struct per_cpu *cpu = counted(current_task());
	if (cpu)
		count(cpu, last - first + 1);
	if (touches(inode->i_ino, first, last))
		tell(inode, BEGIN, 0, pos, bytes);
	return 0;
}

/* A fault is counted once: by the block that is looked at, or by itself, and not again when the
 * kernel comes back with the page in memory. */
INLINE int fault_around(struct address_space *mapping, u64 first, u64 last)
{
	struct inode *inode = mapping->host;
	struct task_struct *task = current_task();
	struct per_cpu *cpu = counted(task);
	u32 tid = task->pid;
	struct fault *before = map_lookup(&faulted, &tid);
	if (before && before->mapping == (u64)mapping && before->page >= first && before->page <= last)
		map_delete(&faulted, &tid);
	else if (cpu)
		count(cpu, 1);
	if (cpu) {
		cpu->around_task = (u64)task;
		cpu->around_first = first;
		cpu->around_last = last;
	}
	if (touches(inode->i_ino, first, last))
		tell(inode, AROUND, 0, first, last);
	return 0;
}

INLINE int fault_page(struct address_space *mapping, u64 page)
{
	struct inode *inode = mapping->host;
	struct task_struct *task = current_task();
	struct per_cpu *cpu = counted(task);
	u32 tid = task->pid;
	struct fault *before = map_lookup(&faulted, &tid);
	if (before && before->mapping == (u64)mapping && before->page == page) {
		map_delete(&faulted, &tid);
	} else {
		struct fault now = {(u64)mapping, page};
		map_update(&faulted, &tid, &now, 0);
		if (cpu && (cpu->around_task != (u64)task || page < cpu->around_first || page > cpu->around_last))
			count(cpu, 1);
	}
	if (cpu)
		cpu->around_task = 0;
	if (touches(inode->i_ino, page, page))
		tell(inode, FAULT, 0, page, page);
	return 0;
}

SEC("tp_btf/mm_filemap_map_pages") int around(u64 *args)
{
	return fault_around((struct address_space *)args[0], args[1], args[2]);
}

SEC("tp_btf/mm_filemap_fault") int fault(u64 *args)
{
	return fault_page((struct address_space *)args[0], args[1]);
}

SEC("fentry/filemap_map_pages") int around_begin(u64 *args)
{
	struct vm_fault *of = (struct vm_fault *)args[0];
	return fault_around(of->vma->vm_file->f_mapping, args[1], args[2]);
}

SEC("fentry/filemap_fault") int fault_begin(u64 *args)
{
	struct vm_fault *of = (struct vm_fault *)args[0];
	return fault_page(of->vma->vm_file->f_mapping, of->pgoff);
}

/* log2 of the pages of a folio: kernels have it in different fields, and in none of a single page. */
APART u8 order_of(struct folio *folio)
{
	struct folio___number *plain = (struct folio___number *)folio;
	struct folio___memdesc *wrapped = (struct folio___memdesc *)folio;
	u64 flags;
	if (HAS(wrapped->flags.f))
		flags = wrapped->flags.f;
	else
		flags = plain->flags;
	if (!(flags >> VALUE(enum pageflags, PG_head) & 1))
		return 0;
	if (HAS(folio->_folio_order))
		return folio->_folio_order;
	if (HAS(plain->_flags_1))
		return (u8)plain->_flags_1;
	return 0;
}

INLINE int folio_event(struct folio *folio, u8 kind)
{
	struct inode *inode = folio->mapping->host;
	u64 first = folio->index;
	u8 order = order_of(folio);
	if (order > 20)
		order = 0;
	if (touches(inode->i_ino, first, first + (1ull << order) - 1))
		tell(inode, kind, order, first, 0);
	return 0;
}

SEC("tp_btf/mm_filemap_add_to_page_cache") int add(u64 *args)
{
	return folio_event((struct folio *)args[0], ADD);
}

SEC("tp_btf/mm_filemap_delete_from_page_cache") int delete(u64 *args)
{
	return folio_event((struct folio *)args[0], DELETE);
}

INLINE int write_event(struct inode *inode, u64 pos, u64 bytes)
{
	u64 last = bytes ? pos + bytes - 1 : pos;
	if (touches(inode->i_ino, pos >> 12, last >> 12))
		tell(inode, WRITE, 0, pos, bytes);
	return 0;
}

SEC("tp_btf/ext4_da_write_begin") int ext4_da_write(u64 *args)
{
	return write_event((struct inode *)args[0], args[1], (u32)args[2]);
}

SEC("tp_btf/ext4_write_begin") int ext4_write(u64 *args)
{
	return write_event((struct inode *)args[0], args[1], (u32)args[2]);
}

SEC("tp_btf/xfs_file_buffered_write") int xfs_write(u64 *args)
{
	struct kiocb *call = (struct kiocb *)args[0];
	return write_event(call->ki_filp->f_mapping->host, call->ki_pos, ((struct iov_iter *)args[1])->count);
}

/* A tracepoint of the system calls would slow down every call of every program. */
SEC("fentry/vfs_fadvise") int advise(u64 *args)
{
	struct inode *inode = ((struct file *)args[0])->f_mapping->host;
	struct event *e = ring_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		note_lost();
		return 0;
	}
	struct task_struct *task = current_task();
	*e = (struct event){.time_ns = ktime_ns(), .group = memory_group(task), .ino = inode->i_ino,
			    .first = args[1], .second = args[2], .dev = inode->i_sb->s_dev,
			    .pid = task->tgid, .tid = task->pid, .kind = ADVISE, .order = (u8)args[3]};
	ring_submit(e, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
