/* Layouts, as C has them, and what calls with nonsense return. Exit status 77: this machine has no regions, so part of it was skipped. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "refault.h"

#define SIZE(type) printf(#type " %zu\n", sizeof(type))
#define FIELD(type, field) printf(#type "." #field " %zu %zu\n", offsetof(type, field), sizeof(((type *)0)->field))

#define EXPECT(call, code, words)                                                                   \
    do {                                                                                            \
        int got = (call);                                                                           \
        if (got != (code) || ((code) != REFAULT_OK && !strstr(refault_last_error(), words))) {      \
            fprintf(stderr, "line %d: %d, \"%s\"\n", __LINE__, got, refault_last_error());          \
            return 1;                                                                               \
        }                                                                                           \
    } while (0)

static void layouts(void) {
#include "fields.h"
}

static int nonsense(void) {
    refault_region *region = NULL;
    refault_file *file = NULL;
    refault_region_config c;
    refault_region_stats stats;
    refault_limits limits;
    refault_file_config f;

    refault_region_config_init(&c, 8 << 20, 8 << 20);
    EXPECT(refault_region_create(NULL, &region), REFAULT_ERR_ARGUMENT, "config is null");
    EXPECT(refault_region_create(&c, NULL), REFAULT_ERR_ARGUMENT, "region is null");
    c.policy = "optimal";
    EXPECT(refault_region_create(&c, &region), REFAULT_ERR_CONFIG, "unknown policy");
    c.policy = "lru";
    c.pool = 9;
    EXPECT(refault_region_create(&c, &region), REFAULT_ERR_ARGUMENT, "no codec 9");
    c.pool = REFAULT_POOL_ZSTD;
    c.fault_mode = 9;
    EXPECT(refault_region_create(&c, &region), REFAULT_ERR_ARGUMENT, "no mode 9");
    c.fault_mode = REFAULT_FAULTS_BY_THREADS;
    c.thp = "64k=always 3k=always";
    EXPECT(refault_region_create(&c, &region), REFAULT_ERR_CONFIG, "thp: unknown size \"3k\"");
    c.thp = "1m=always";
    EXPECT(refault_region_create(&c, &region), REFAULT_ERR_CONFIG, "at most 256 KiB");
    c.thp = NULL;
    c.sample_cpu_percent = 99;
    EXPECT(refault_region_create(&c, &region), REFAULT_ERR_CONFIG, "at most 50");
    c.sample_cpu_percent = 0;
    c.stall_limit_ms = 0;
    EXPECT(refault_region_create(&c, &region), REFAULT_ERR_CONFIG, "stall_limit is 0ns");
    c.stall_limit_ms = 1;
    c.fault_threads = 1000;
    EXPECT(refault_region_create(&c, &region), REFAULT_ERR_CONFIG, "fault_threads is 1000; at most 256");
    c.struct_bytes = 8;
    EXPECT(refault_region_create(&c, &region), REFAULT_ERR_ARGUMENT, "refault_region_config_init");
    refault_region_config_init(&c, 8 << 20, 100);
    EXPECT(refault_region_create(&c, &region), REFAULT_ERR_CONFIG, "at least 4 MiB");
    refault_region_config_init(&c, REFAULT_MAX, 8 << 20);
    EXPECT(refault_region_create(&c, &region), REFAULT_ERR_CONFIG, "at most 1 TiB");
    refault_region_config_init(&c, 8 << 20, 8 << 20);
    c.swap_directory = "/nowhere";
    EXPECT(refault_region_create(&c, &region), REFAULT_ERR_IO, "making the swap file in /nowhere: ");
    if (refault_last_errno() != ENOENT || region != NULL)
        return 1;
    refault_region_destroy(NULL);
    if (refault_region_pointer(NULL) || refault_region_bytes(NULL))
        return 1;
    EXPECT(refault_region_get_stats(NULL, &stats, sizeof stats), REFAULT_ERR_ARGUMENT, "region is null");
    EXPECT(refault_region_set_limits(NULL, &limits), REFAULT_ERR_ARGUMENT, "region is null");

    refault_file_config_init(&f, 8 << 20);
    EXPECT(refault_file_open(NULL, &f, &file), REFAULT_ERR_ARGUMENT, "path is null");
    EXPECT(refault_file_open("/nowhere/at/all", &f, &file), REFAULT_ERR_IO, "No such file");
    EXPECT(refault_file_flush(NULL), REFAULT_ERR_ARGUMENT, "file is null");
    EXPECT(refault_file_set_memory_max(NULL, 8 << 20), REFAULT_ERR_ARGUMENT, "file is null");
    EXPECT(refault_file_advise_access(NULL, 1), REFAULT_ERR_ARGUMENT, "file is null");
    EXPECT(refault_file_close(NULL), REFAULT_OK, "");

    refault_region_config_init(&c, 8 << 20, 8 << 20);
    if (refault_region_create(&c, &region) == REFAULT_ERR_UNSUPPORTED)
        return 77;
    EXPECT(refault_region_advise(region, 4096, REFAULT_MAX, REFAULT_COLD, NULL), REFAULT_ERR_RANGE, "there are no");
    EXPECT(refault_region_advise(region, 0, (8 << 20) + 1, REFAULT_COLD, NULL), REFAULT_ERR_RANGE, "there are no bytes");
    EXPECT(refault_region_advise(region, 1, 4096, REFAULT_FREE, NULL), REFAULT_ERR_RANGE, "whole pages");
    EXPECT(refault_region_advise(region, 0, 4096, 99, NULL), REFAULT_ERR_ARGUMENT, "no advice 99");
    EXPECT(refault_region_advise_huge(region, 9), REFAULT_ERR_ARGUMENT, "no advice on folios 9");
    EXPECT(refault_region_advise_huge(NULL, 1), REFAULT_ERR_ARGUMENT, "region is null");
    EXPECT(refault_region_advise_access(region, 9), REFAULT_ERR_ARGUMENT, "no advice on accesses 9");
    EXPECT(refault_region_advise_access(NULL, 1), REFAULT_ERR_ARGUMENT, "region is null");
    EXPECT(refault_region_advise_access(region, REFAULT_ACCESS_RANDOM), REFAULT_OK, "");
    EXPECT(refault_region_advise_access(region, REFAULT_ACCESS_NORMAL), REFAULT_OK, "");
    EXPECT(refault_region_get_limits(region, NULL), REFAULT_ERR_ARGUMENT, "limits is null");
    EXPECT(refault_region_get_limits(region, &limits), REFAULT_OK, "");
    if (limits.memory_max != 8 << 20 || limits.memory_high != REFAULT_MAX || limits.zswap_max != 4 << 20)
        return 1;
    limits.swap_max *= 2;
    EXPECT(refault_region_set_limits(region, &limits), REFAULT_ERR_CONFIG, "swap_max");
    /* A caller with an older header: what it does not know is left alone. */
    memset(&stats, 0xee, sizeof stats);
    EXPECT(refault_region_get_stats(region, &stats, 2 * sizeof(uint64_t)), REFAULT_OK, "");
    if (stats.memory_bytes == 0 || stats.own_bytes != UINT64_C(0xeeeeeeeeeeeeeeee))
        return 1;
    EXPECT(refault_region_get_stats(region, NULL, 8), REFAULT_ERR_ARGUMENT, "stats is null");
    /* A child of fork has it not, and must not wait for its threads. */
    pid_t child = fork();
    if (child == 0) {
        refault_region_destroy(region);
        _exit(strstr(refault_last_error(), "forked") ? 0 : 1);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return 1;
    refault_region_destroy(region);
    return 0;
}

/* Faults that their own thread serves: all of it comes back, and what is out of memory is EFAULT for system calls. */
static int by_signal(void) {
    refault_region *region = NULL;
    refault_region_config c;
    uint64_t pages, *words;
    int ends[2];

    refault_region_config_init(&c, 16 << 20, 8 << 20);
    c.fault_mode = REFAULT_FAULTS_BY_SIGNAL;
    if (refault_region_create(&c, &region) == REFAULT_ERR_UNSUPPORTED)
        return 77;
    words = refault_region_pointer(region);
    for (uint64_t i = 0; i < (16 << 20) / 8; i++)
        words[i] = i / 16;
    for (uint64_t i = 0; i < (16 << 20) / 8; i++)
        if (words[i] != i / 16)
            return 1;
    EXPECT(refault_region_advise(region, 0, 4096, REFAULT_PAGE_OUT, &pages), REFAULT_OK, "");
    if (pages != 1 || pipe(ends) != 0)
        return 1;
    if (write(ends[1], words, 4096) != -1 || errno != EFAULT)
        return 1;
    EXPECT(refault_region_advise(region, 0, 4096, REFAULT_POPULATE, &pages), REFAULT_OK, "");
    if (pages != 1 || write(ends[1], words, 4096) != 4096)
        return 1;
    refault_region_destroy(region);
    return 0;
}

/* Folios of 64 KiB, once the region is advised to have them, and samples: all of it comes back. */
static int folios(void) {
    refault_region *region = NULL;
    refault_region_config c;
    refault_region_stats before, stats;
    uint64_t *words;

    refault_region_config_init(&c, 16 << 20, 8 << 20);
    c.thp = "64k=madvise";
    c.sample_cpu_percent = 2;
    if (refault_region_create(&c, &region) == REFAULT_ERR_UNSUPPORTED)
        return 77;
    words = refault_region_pointer(region);
    words[0] = 1;
    EXPECT(refault_region_get_stats(region, &before, sizeof before), REFAULT_OK, "");
    EXPECT(refault_region_advise_huge(region, REFAULT_HUGE), REFAULT_OK, "");
    for (uint64_t i = 0; i < (16 << 20) / 8; i++)
        words[i] = i / 16;
    for (uint64_t i = 0; i < (16 << 20) / 8; i++)
        if (words[i] != i / 16)
            return 1;
    EXPECT(refault_region_get_stats(region, &stats, sizeof stats), REFAULT_OK, "");
    if (before.folios_made != 0 || stats.folios_made < 16 || stats.folios_out + stats.folios_split == 0 || stats.swapped_out == 0)
        return 1;
    refault_region_destroy(region);
    return 0;
}

int main(int argc, char **argv) {
    int result;
    (void)argv;
    if (argc == 1) {
        layouts();
        return 0;
    }
    result = nonsense();
    result = result ? result : by_signal();
    return result ? result : folios();
}
