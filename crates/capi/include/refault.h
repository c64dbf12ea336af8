/* refault: memory larger than the memory it takes, and files mapped likewise.
 *
 * Link with librefault.so (-lrefault) or librefault.a (-lrefault -lpthread -ldl -lm). Linux 6.8 or later on x86-64, pages of 4 KiB; what a
 * machine allows is told by `refault doctor`.
 *
 * Functions that return int return REFAULT_OK or one of the errors below; what went wrong, in words, is refault_last_error().
 * Handles may be used by several threads at a time, but for destroy and close. A child of fork has neither the memory nor the threads of its parent's
 * handles: it may not use them, and destroy and close do nothing there. Nothing here may be called from a signal handler,
 * and a handler may not touch memory of a region or a mapped file if it may interrupt a call of these, or, by signal, the program's allocator: both hold
 * locks that a fault takes.
 *
 * A touch of memory that cannot be had (its store failed, or there is no room) raises SIGBUS, and a line on standard error says why;
 * system calls that are handed it fail with EFAULT or EHWPOISON. Children of fork do not have the memory. Do not unmap or remap it.
 */
#ifndef REFAULT_H
#define REFAULT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Errors. */
enum {
    REFAULT_OK = 0,
    REFAULT_ERR_CONFIG = -1,      /* a setting is impossible */
    REFAULT_ERR_UNSUPPORTED = -2, /* this machine does not allow it */
    REFAULT_ERR_LIMIT = -3,       /* a limit cannot be met; all are as they were */
    REFAULT_ERR_RANGE = -4,       /* there are no such bytes, or not whole pages where whole pages are needed */
    REFAULT_ERR_IO = -5,          /* a system call failed; refault_last_errno() tells which way */
    REFAULT_ERR_ARGUMENT = -6,    /* a null pointer, a number that means nothing, a struct of another version */
    REFAULT_ERR_INTERNAL = -7     /* a defect of refault */
};

/* Message of the last failed call of this thread: one line, valid until the next call of this thread that fails. Never null. */
const char *refault_last_error(void);
/* The errno of that, or 0. */
int refault_last_errno(void);
/* The version of the library. */
const char *refault_version(void);

/* No limit, where there may be none. */
#define REFAULT_MAX UINT64_MAX

/* How the pool compresses. */
enum { REFAULT_POOL_NONE = 0, REFAULT_POOL_LZ4 = 1, REFAULT_POOL_ZSTD = 2 };

/* Server of a region's faults: its threads, or whoever makes them, in a handler of SIGBUS, which is faster. Then
 * - a system call that is handed memory which is not in place fails with EFAULT: REFAULT_POPULATE it first;
 * - threads that touch the region do not block SIGBUS, or the kernel ends the process, and have 64 KiB of stack left;
 * - malloc takes no memory from the region, because a fault takes memory from malloc;
 * - a handler of SIGBUS that was there before the first such region gets what is not a region's fault, and pages that are lost. One that is installed
 *   later has to call the one that it replaced. */
enum { REFAULT_FAULTS_BY_THREADS = 0, REFAULT_FAULTS_BY_SIGNAL = 1 };

/* A region: anonymous memory. */
typedef struct refault_region refault_region;

/* Sizes are in bytes. */
typedef struct refault_region_config {
    uint64_t struct_bytes;      /* sizeof(refault_region_config); set by refault_region_config_init */
    uint64_t bytes;             /* size of the region */
    uint64_t memory_max;        /* its pages, the pool and the pager itself take no more than that; at least 4 MiB */
    uint64_t memory_high;       /* beyond it, who faults is slowed down; REFAULT_MAX: never */
    uint64_t swap_max;          /* what may be out of memory, before compression */
    uint64_t zswap_max;         /* what the pool may take of memory_max */
    uint64_t stall_limit_ms;    /* a fault that finds no room for so long is SIGBUS; 1 or more */
    const char *policy;         /* as `refault replay --policy`: "mglru", "lru", ...; null: "mglru" */
    const char *swap_directory; /* where a swap file without a name is made; null: none */
    const char *thp;            /* sizes of folios, as `refault replay --thp`, between blanks: "64k=always swap-in=on"; 16k to 256k; null: single pages */
    uint32_t pool;              /* REFAULT_POOL_... */
    uint32_t fault_threads;     /* at most 256; 0: as many as suit this machine, at most 4, with a pool alone half of its CPUs */
    uint32_t standby_percent;   /* of memory, for pages that are out of reach and not written yet */
    uint32_t fault_mode;        /* REFAULT_FAULTS_... */
    uint32_t sample_cpu_percent; /* pages out of reach whose touch tells the policy, as many as so much of a processor pays for; 0: none */
    uint32_t pool_adapts;       /* between a pool and a swap file: how much of zswap_max the pool gets is decided while the region is used; 0: always all */
    uint32_t poll;              /* by signal: who waits for a page of the swap file polls for it while it comes soon, which takes a processor, and not the time to wake it; 0: sleeps */
    uint32_t awake_cpus;        /* on a machine with at most so many processors, those without work are kept from halting while faults come fast; 0: never */
} refault_region_config;

/* Fills in defaults: everything may go out, to a pool of LZ4 in half of the memory. */
void refault_region_config_init(refault_region_config *config, uint64_t bytes, uint64_t memory_max);

int refault_region_create(const refault_region_config *config, refault_region **region);
/* Nobody may use the memory any more. Null is allowed. */
void refault_region_destroy(refault_region *region);

/* Its first byte; null for null. */
void *refault_region_pointer(const refault_region *region);
/* Its size; 0 for null. */
uint64_t refault_region_bytes(const refault_region *region);

/* Advice. */
enum {
    REFAULT_WILL_NEED = 0, /* bring in what is out of memory */
    REFAULT_POPULATE = 1,  /* the same, and what was never touched */
    REFAULT_COLD = 2,      /* the next to go */
    REFAULT_PAGE_OUT = 3,  /* go now */
    REFAULT_DONT_NEED = 4, /* zeros from now on; whole pages only */
    REFAULT_FREE = 5       /* as REFAULT_DONT_NEED */
};

/* Advice on `length` bytes from `offset` on. `pages`, unless null: how many pages of the range are in place after WILL_NEED and POPULATE, how
 * many are not after PAGE_OUT, else 0. Writes of others to a range that is given up meanwhile may be gone. */
int refault_region_advise(refault_region *region, uint64_t offset, uint64_t length, int advice, uint64_t *pages);

/* Whether first touches may make folios of the sizes that `thp` sets to "madvise" (or "inherit", with "enabled=madvise"): for all of the region. */
enum { REFAULT_HUGE_NONE = 0, REFAULT_HUGE = 1, REFAULT_NO_HUGE = 2 };
int refault_region_advise_huge(refault_region *region, int advice);

/* How the program accesses all of a region or of a mapped file. But for REFAULT_ACCESS_NORMAL, that its pages are touched does not keep them in
 * memory, as with MADV_RANDOM, MADV_SEQUENTIAL and POSIX_FADV_NOREUSE since Linux 6.3; of a file that is accessed at random nothing is read ahead. */
enum {
    REFAULT_ACCESS_NORMAL = 0,
    REFAULT_ACCESS_RANDOM = 1,
    REFAULT_ACCESS_SEQUENTIAL = 2,
    REFAULT_ACCESS_NO_REUSE = 3
};
int refault_region_advise_access(refault_region *region, int advice);

/* Limits, as in the configuration. */
typedef struct refault_limits {
    uint64_t memory_max;
    uint64_t memory_high;
    uint64_t swap_max;
    uint64_t zswap_max;
} refault_limits;

int refault_region_get_limits(const refault_region *region, refault_limits *limits);
/* A lower memory_max evicts down to it before this returns, or it is REFAULT_ERR_LIMIT and all limits are as they were. swap_max and zswap_max can
 * be what they were at first, and less. */
int refault_region_set_limits(refault_region *region, const refault_limits *limits);

/* Bytes are as they are, all else counts from the start on. */
typedef struct refault_region_stats {
    uint64_t memory_bytes;   /* taken: by content, the pool and the pager */
    uint64_t peak_bytes;     /* the most of it */
    uint64_t own_bytes;      /* of it, tables, stacks and buffers of the pager */
    uint64_t store_bytes;    /* of it, the pool and the tables of the store */
    uint64_t swap_bytes;     /* out of memory, before compression */
    uint64_t faults;
    uint64_t first_touches;  /* faults on pages that were never touched before */
    uint64_t swapped_in;     /* pages read back */
    uint64_t swapped_out;    /* pages written */
    uint64_t rescued;        /* pages touched between being moved out and being gone */
    uint64_t throttled;      /* pages whose faults waited because of memory_high */
    uint64_t throttled_ns;
    uint64_t read_errors;
    uint64_t write_errors;
    uint64_t lost_pages;     /* whoever touches one gets SIGBUS */
    uint64_t events_high;    /* `high` of memory.events */
    uint64_t events_max;     /* `max` */
    uint64_t samples_taken;  /* pages put out of reach for sample_cpu_percent */
    uint64_t samples_seen;   /* of those, touched in time */
    uint64_t sample_cost_ns; /* of processor time */
    uint64_t folios_made;    /* folios of more than a page, of any size: by first touches */
    uint64_t folios_out;     /* moved out whole */
    uint64_t folios_in;      /* read back whole */
    uint64_t folios_split;
    uint64_t pool_limit_bytes; /* what the pool may take now: zswap_max, or less with pool_adapts */
} refault_region_stats;

/* `size` is sizeof(refault_region_stats) of the caller's header: a newer library fills in what that has. */
int refault_region_get_stats(const refault_region *region, refault_region_stats *stats, size_t size);

/* A mapped file. */
typedef struct refault_file refault_file;

typedef struct refault_file_config {
    uint64_t struct_bytes;   /* sizeof(refault_file_config); set by refault_file_config_init */
    uint64_t memory_max;     /* its pages and the pager itself take no more than that; at least 4 MiB */
    uint64_t stall_limit_ms; /* a fault that finds no room for so long is SIGBUS; 1 or more */
    const char *policy;      /* null: "mglru" */
    uint32_t writable;       /* 0: to be read */
    uint32_t fault_threads;  /* at most 256; 0: as many as there are CPUs, at most 4 */
    uint32_t awake_cpus;     /* as of refault_region_config */
    uint32_t dirty_background_ratio; /* more than so many percent of its memory changed and not written: the older half is written; at most 100 */
} refault_file_config;

/* Fills in defaults: to be read and written. */
void refault_file_config_init(refault_file_config *config, uint64_t memory_max);

/* Maps a file as long as it is now. */
int refault_file_open(const char *path, const refault_file_config *config, refault_file **file);

/* Its first byte; null for null. */
void *refault_file_pointer(const refault_file *file);
/* The length of the file when it was opened; 0 for null. */
uint64_t refault_file_bytes(const refault_file *file);

/* Reads ahead. `pages`, unless null: how many pages of the range are in place. */
int refault_file_will_need(refault_file *file, uint64_t offset, uint64_t length, uint64_t *pages);

/* REFAULT_ACCESS_..., for all of the file. */
int refault_file_advise_access(refault_file *file, int advice);

/* Sets memory_max while the file is in use. A lower one drops pages, after writing those that were changed, before this returns; if that cannot
 * be done it is REFAULT_ERR_LIMIT, and the limit is as it was. */
int refault_file_set_memory_max(refault_file *file, uint64_t memory_max);

/* All that was written to the memory before is in the file, on its medium, when this returns REFAULT_OK. An error of writing is told by one flush;
 * the pages are dirty as before, and the next flush tries again. */
int refault_file_flush(refault_file *file);

/* A flush, with its result; the file is mapped no more, whatever that is. Nobody may use the memory any more. Null is allowed. */
int refault_file_close(refault_file *file);

typedef struct refault_file_stats {
    uint64_t memory_bytes;    /* taken: by content and the pager */
    uint64_t peak_bytes;      /* the most of it */
    uint64_t own_bytes;       /* of it, tables, stacks and buffers of the pager */
    uint64_t dirty_bytes;     /* changed, and not written yet */
    uint64_t writeback_bytes; /* being written */
    uint64_t faults;
    uint64_t reads;           /* pages */
    uint64_t writes;          /* pages */
    uint64_t read_errors;
    uint64_t write_errors;
    uint64_t lost_pages;      /* whoever touches one gets SIGBUS */
} refault_file_stats;

/* `size` as for refault_region_get_stats. */
int refault_file_get_stats(const refault_file *file, refault_file_stats *stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif
