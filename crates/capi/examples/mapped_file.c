/* Adds up and changes a file of 64-bit numbers that is larger than the memory it is given: mapped_file FILE.
 * Exit status 77: this machine does not allow it. */
#include <stdio.h>

#include "refault.h"

#define MIB (UINT64_C(1) << 20)

static int failed(const char *what, int error) {
    fprintf(stderr, "%s: %s\n", what, refault_last_error());
    return error == REFAULT_ERR_UNSUPPORTED ? 77 : 1;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: mapped_file FILE\n");
        return 2;
    }
    refault_file_config config;
    refault_file_config_init(&config, 8 * MIB);
    refault_file *file;
    int error = refault_file_open(argv[1], &config, &file);
    if (error)
        return failed(argv[1], error);

    /* From front to back: pages that were read need not stay. */
    if ((error = refault_file_advise_access(file, REFAULT_ACCESS_SEQUENTIAL)))
        return failed("advice", error);
    uint64_t *numbers = refault_file_pointer(file);
    uint64_t n = refault_file_bytes(file) / sizeof *numbers, sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        sum += numbers[i];
        numbers[i] += 1;
    }
    /* Half of the memory is enough for what follows. */
    if ((error = refault_file_set_memory_max(file, 4 * MIB)))
        return failed("a lower limit", error);
    if ((error = refault_file_flush(file)))
        return failed("flush", error);

    refault_file_stats stats;
    if ((error = refault_file_get_stats(file, &stats, sizeof stats)))
        return failed("stats", error);
    fprintf(stderr, "%llu pages read, %llu written, at most %llu KiB of memory\n", (unsigned long long)stats.reads,
            (unsigned long long)stats.writes, (unsigned long long)stats.peak_bytes / 1024);
    if (stats.dirty_bytes != 0 || stats.peak_bytes > 8 * MIB || stats.memory_bytes > 4 * MIB)
        return 1;
    if ((error = refault_file_close(file)))
        return failed("close", error);
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
