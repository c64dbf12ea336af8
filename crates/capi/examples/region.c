/* 64 MiB in 16 MiB of memory: fills it, checks it, changes limits, gives parts up.
 * Exit status 77: this machine does not allow it. */
#include <stdio.h>
#include <string.h>

#include "refault.h"

#define MIB (UINT64_C(1) << 20)

static int failed(const char *what, int error) {
    fprintf(stderr, "%s: %s\n", what, refault_last_error());
    return error == REFAULT_ERR_UNSUPPORTED ? 77 : 1;
}

int main(void) {
    refault_region_config config;
    refault_region_config_init(&config, 64 * MIB, 16 * MIB);
    config.memory_high = 15 * MIB;

    refault_region *region;
    int error = refault_region_create(&config, &region);
    if (error)
        return failed("making a region", error);

    uint64_t *words = refault_region_pointer(region);
    uint64_t n = refault_region_bytes(region) / sizeof *words;
    for (uint64_t i = 0; i < n; i++)
        words[i] = i / 16;
    for (uint64_t i = 0; i < n; i++) {
        if (words[i] != i / 16) {
            fprintf(stderr, "word %llu is %llu\n", (unsigned long long)i, (unsigned long long)words[i]);
            return 1;
        }
    }

    /* Less memory from now on. */
    refault_limits limits;
    if ((error = refault_region_get_limits(region, &limits)))
        return failed("limits", error);
    limits.memory_max = 12 * MIB;
    limits.memory_high = REFAULT_MAX;
    limits.zswap_max = 6 * MIB;
    if ((error = refault_region_set_limits(region, &limits)))
        return failed("lower limits", error);

    /* The first MiB comes in, the second is given up. */
    uint64_t pages;
    if ((error = refault_region_advise(region, 0, MIB, REFAULT_WILL_NEED, &pages)))
        return failed("will need", error);
    if (pages < 200 || words[1000] != 1000 / 16) {
        fprintf(stderr, "%llu of 256 pages came in\n", (unsigned long long)pages);
        return 1;
    }
    if ((error = refault_region_advise(region, MIB, MIB, REFAULT_DONT_NEED, NULL)))
        return failed("don't need", error);
    for (uint64_t i = MIB / 8; i < 2 * MIB / 8; i++)
        if (words[i] != 0) {
            fprintf(stderr, "word %llu was given up and is not zero\n", (unsigned long long)i);
            return 1;
        }

    refault_region_stats stats;
    if ((error = refault_region_get_stats(region, &stats, sizeof stats)))
        return failed("stats", error);
    printf("%s: %llu faults, %llu pages out and %llu back, %llu KiB of memory, at most %llu\n", refault_version(),
           (unsigned long long)stats.faults, (unsigned long long)stats.swapped_out, (unsigned long long)stats.swapped_in,
           (unsigned long long)stats.memory_bytes / 1024, (unsigned long long)stats.peak_bytes / 1024);
    if (stats.swapped_out == 0 || stats.peak_bytes > 16 * MIB || stats.memory_bytes > 12 * MIB || stats.lost_pages)
        return 1;
    refault_region_destroy(region);
    return 0;
}
