/*
 * The test of the swap allocator with numbers of its own: the same sequence on any kernel.
 *
 *   slots MODE SMALL_MIB LARGE_MIB ITERATIONS SEED
 *
 * MODE: letters of "a" (whole blocks of 64 KiB come back, else single pages), "s" (a part in single
 * pages beside), or "-". An iteration touches 16 MiB of the large part at random, gives 16 MiB of it
 * back in blocks of 64 KiB and writes those again, touches 1 MiB of the small part if there is one,
 * and pages all of it out. Blocks are drawn with replacement by x = x * 6364136223846793005 +
 * 1442695040888963407, of which (x >> 33) % n counts; x is SEED at first.
 *
 * A line for each iteration, the first of which is the one before the loop: slots in use, pages
 * read, then SIZE:SWPOUT:FALLBACK for each size of which any were.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

enum { BLOCK = 64 << 10, PAGE = 4096, SIZES = 8, COUNTERS = 2 };

static const char *const counters[COUNTERS] = { "swpout", "swpout_fallback" };
static uint64_t state;

static uint64_t draw(uint64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % n;
}

static long number(const char *path)
{
	FILE *f = fopen(path, "r");
	long n = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%ld", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

static void sizes(long all[SIZES][COUNTERS])
{
	char path[128];

	for (int i = 0; i < SIZES; i++)
		for (int c = 0; c < COUNTERS; c++) {
			snprintf(path, sizeof path, "/sys/kernel/mm/transparent_hugepage/hugepages-%dkB/stats/%s",
				 16 << i, counters[c]);
			all[i][c] = number(path);
		}
}

static long vmstat(const char *name)
{
	char line[128], key[64];
	long n = 0, found = 0;
	FILE *f = fopen("/proc/vmstat", "r");

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%63s %ld", key, &n) == 2 && !strcmp(key, name))
			found = n;
	if (f)
		fclose(f);
	return found;
}

static long used(void)
{
	char line[256];
	long size, kb = 0, sum = 0;
	FILE *f = fopen("/proc/swaps", "r");

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%*s %*s %ld %ld", &size, &kb) == 2)
			sum += kb;
	if (f)
		fclose(f);
	return sum / 4;
}

static void print(long at, long before[SIZES][COUNTERS], long *read)
{
	long now[SIZES][COUNTERS], in = vmstat("pswpin");

	sizes(now);
	printf("%ld %ld %ld", at, used(), in - *read);
	*read = in;
	for (int i = 0; i < SIZES; i++) {
		long n[COUNTERS], any = 0;

		for (int c = 0; c < COUNTERS; c++)
			any |= n[c] = now[i][c] - before[i][c];
		if (any)
			printf(" %d:%ld:%ld", 16 << i, n[0], n[1]);
		memcpy(before[i], now[i], sizeof now[i]);
	}
	printf("\n");
}

static char *area(size_t size, int advice)
{
	char *all = mmap(NULL, size + (4 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = (char *)(((uintptr_t)all + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));

	if (all == MAP_FAILED || madvise(at, size, advice)) {
		perror("area");
		exit(2);
	}
	return at;
}

static void page_out(char *at, size_t size)
{
	if (size && madvise(at, size, MADV_PAGEOUT)) {
		perror("MADV_PAGEOUT");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fprintf(stderr, "usage: slots MODE SMALL_MIB LARGE_MIB ITERATIONS SEED\n");
		return 2;
	}
	int aligned = strchr(argv[1], 'a') != NULL, with_small = strchr(argv[1], 's') != NULL;
	size_t small = with_small ? (size_t)atol(argv[2]) << 20 : 0, large = (size_t)atol(argv[3]) << 20;
	long rounds = atol(argv[4]), before[SIZES][COUNTERS], read = vmstat("pswpin");
	cpu_set_t cpu;

	state = strtoull(argv[5], NULL, 10);
	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	sched_setaffinity(0, sizeof cpu, &cpu);
	setvbuf(stdout, malloc(1 << 20), _IOFBF, 1 << 20);

	char *big = area(large, MADV_HUGEPAGE), *little = small ? area(small, MADV_NOHUGEPAGE) : NULL;

	sizes(before);
	memset(big, 0x11, large);
	page_out(big, large);
	if (small) {
		memset(little, 0x11, small);
		page_out(little, small);
	}
	print(0, before, &read);
	for (long at = 1; at <= rounds; at++) {
		size_t unit = aligned ? BLOCK : PAGE;

		for (size_t n = 0; n < (16 << 20) / unit; n++)
			memset(big + draw(large / unit) * unit, 0x11, unit);
		for (size_t n = 0; n < (16 << 20) / BLOCK; n++) {
			char *block = big + draw(large / BLOCK) * BLOCK;

			madvise(block, BLOCK, MADV_DONTNEED);
			memset(block, 0x11, BLOCK);
		}
		for (size_t n = 0; small && n < (1 << 20) / PAGE; n++)
			memset(little + draw(small / PAGE) * PAGE, 0x11, PAGE);
		page_out(big, large);
		page_out(little, small);
		print(at, before, &read);
	}
	return 0;
}
