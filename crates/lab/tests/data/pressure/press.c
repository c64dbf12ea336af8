/* One case of pressure and time: tasks that read a disk through the page cache, or touch anonymous
 * memory, in a group; what the kernel says of pressure, and the latency of each access. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define PAGE 4096ul

static uint64_t s = 88172645463325252ull;
static uint64_t rnd(void) { s ^= s << 13; s ^= s >> 7; s ^= s << 17; return s >> 11; }
static uint64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}
/* The program's own work: a fixed number of instructions. */
static void work(uint64_t n) { for (uint64_t i = 0; i < n; i++) __asm__ volatile(""); }

/* Latencies: 32 steps for each power of two. */
#define BUCKETS (64 * 32)
static uint64_t *hist;
static int bucket(uint64_t ns) {
	if (ns < 32) return ns;
	int e = 63 - __builtin_clzll(ns);
	return (e - 4) * 32 + ((ns >> (e - 5)) & 31);
}
static void cat(const char *name, const char *path) {
	char b[65536];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, b, sizeof b - 1);
	if (n <= 0) return;
	b[n] = 0;
	close(fd);
	for (char *l = strtok(b, "\n"); l; l = strtok(0, "\n")) printf("%s %s\n", name, l);
}
/* Totals of pressure are brought up to date every two seconds. */
static void state(const char *when, const char *group) {
	usleep(2500000);
	char p[256], name[64];
	const char *files[] = {"memory.pressure", "io.pressure", "cpu.pressure", "memory.stat", "memory.events", "cpu.stat"};
	for (int i = 0; i < 6; i++) {
		snprintf(p, sizeof p, "/sys/fs/cgroup/%s/%s", group, files[i]);
		snprintf(name, sizeof name, "%s group.%s", when, files[i]);
		cat(name, p);
	}
	snprintf(name, sizeof name, "%s machine.memory.pressure", when); cat(name, "/proc/pressure/memory");
	snprintf(name, sizeof name, "%s machine.io.pressure", when); cat(name, "/proc/pressure/io");
	snprintf(name, sizeof name, "%s vmstat", when); cat(name, "/proc/vmstat");
	snprintf(name, sizeof name, "%s disk", when); cat(name, "/sys/block/nullb0/stat");
	snprintf(name, sizeof name, "%s swapdisk", when); cat(name, "/sys/block/nullb1/stat");
}
/* A page that lz4 shrinks to a third: 1344 bytes that it cannot shrink, then zeros. */
static void fill(char *page) { for (int k = 0; k < 168; k++) ((uint64_t *)page)[k] = rnd() * 0x9e3779b97f4a7c15ull; }
static char *kind, *pattern;
static uint64_t pages, hot, share;
static uint64_t next_page(uint64_t i) {
	if (*pattern == 's') return i % pages;
	if (*pattern == 'h' && rnd() % 100 < share) return rnd() % hot;
	return rnd() % pages;
}
/* press GROUP KIND(file|direct|anon|mixed) PATTERN(seq|uniform|hot) MIB HOTMIB SHARE TASKS WARM N WORK SEED */
int main(int c, char **v) {
	if (c < 11) return 2;
	const char *group = v[1];
	kind = v[2]; pattern = v[3];
	pages = atol(v[4]) * 256; hot = atol(v[5]) * 256; share = atol(v[6]);
	int tasks = atoi(v[7]);
	if (c > 11) s += atol(v[11]) * 1000003;
	uint64_t warm = atol(v[8]), n = atol(v[9]), cpu = atol(v[10]);
	char p[256];
	snprintf(p, sizeof p, "/sys/fs/cgroup/%s/cgroup.procs", group);
	FILE *f = fopen(p, "w"); if (f) { fprintf(f, "0"); fclose(f); }
	hist = mmap(0, BUCKETS * 8 + 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	volatile int *go = (void *)(hist + BUCKETS);
	memset(hist, 0, BUCKETS * 8 + 4096);
	int flags = O_RDONLY | (*kind == 'd' ? O_DIRECT : 0);
	int anon = *kind == 'a' || *kind == 'm';
	for (int t = 0; t < tasks; t++) if (fork() == 0) {
		int fd = open("/dev/nullb0", flags);
		if (*pattern != 's') posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
		char *buf = aligned_alloc(PAGE, PAGE), *m = 0;
		s += t * 7919; for (int i = 0; i < 20; i++) rnd();
		if (anon) {
			m = mmap(0, pages * PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			for (uint64_t i = 0; i < pages; i++) fill(m + i * PAGE);
		}
		for (uint64_t i = 0; i < warm + n; i++) {
			if (i == warm) { __sync_fetch_and_add(go, 1); while (go[1] == 0) usleep(1000); }
			uint64_t at = next_page(i), t0 = now();
			if (anon && (*kind == 'a' || (i & 1))) ((volatile char *)m)[at * PAGE]++;
			else if (pread(fd, buf, PAGE, at * PAGE) != (ssize_t)PAGE) { perror("read"); return 1; }
			uint64_t ns = now() - t0;
			if (i >= warm) __sync_fetch_and_add(&hist[bucket(ns)], 1);
			work(cpu);
		}
		/* Its memory stays until all are done. */
		__sync_fetch_and_add(go + 2, 1);
		while (go[2] < tasks) usleep(1000);
		_exit(0);
	}
	while (go[0] < tasks) usleep(10000);
	f = fopen("/sys/fs/cgroup/cgroup.procs", "w"); if (f) { fprintf(f, "0"); fclose(f); }
	state("before", group);
	uint64_t t0 = now();
	go[1] = 1;
	for (int t = 0; t < tasks; t++) wait(0);
	uint64_t ns = now() - t0;
	state("after", group);
	printf("run_ns %lu\n", ns);
	for (int i = 0; i < BUCKETS; i++) if (hist[i]) {
		int e = i / 32 + 4; uint64_t low = i < 32 ? i : (1ull << e) + ((uint64_t)(i & 31) << (e - 5));
		printf("lat %lu %lu\n", low, hist[i]);
	}
	return 0;
}
