// Touches memory of a guest with two nodes by a pattern, and prints counters of /proc/vmstat.
//
// usage: tiers MIB SECONDS PATTERN [SHARE [THREADS [FILE]]]
//   FILE is mapped, shared and writable, and read alone, where one is given
//   hot   SHARE of accesses (percent) go to the last tenth of memory, the others everywhere
//   half  as hot, with the last half
//   move  as hot, with a tenth that is another one every 5 s
//   zipf  exponent 1, popular pages strewn over all
//   scan  one page after the other, round and round
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static __thread uint64_t state = 88172645463325252ull;
static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 11;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static int kswapd;
static double kswapd_cpu(void)
{
	char path[300], text[400];
	unsigned long ns = 0;
	FILE *f;
	if (!kswapd) {
		DIR *d = opendir("/proc");
		for (struct dirent *e; !kswapd && (e = readdir(d));) {
			sprintf(path, "/proc/%s/comm", e->d_name);
			if ((f = fopen(path, "r"))) {
				if (fgets(text, 400, f) && !strcmp(text, "kswapd0\n"))
					kswapd = atoi(e->d_name);
				fclose(f);
			}
		}
		closedir(d);
	}
	sprintf(path, "/proc/%d/schedstat", kswapd);
	if ((f = fopen(path, "r"))) {
		if (fscanf(f, "%lu", &ns) != 1)
			ns = 0;
		fclose(f);
	}
	return ns * 1e-9;
}

static void show(double t, uint64_t n)
{
	static char line[65536];
	FILE *f = fopen("/proc/vmstat", "r");
	printf("t %.2f cpu %.2f kswapd %.2f n %lu", t, cpu(), kswapd_cpu(), n);
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "numa_hint_faults ", 17) || !strncmp(line, "numa_pte", 8) || !strncmp(line, "pgpromote", 9) ||
		    !strncmp(line, "pgdemote", 8) || !strncmp(line, "pgmigrate", 9) || !strncmp(line, "pgscan_", 7) || !strncmp(line, "pgrefill", 8) || !strncmp(line, "pgactivate", 10) || !strncmp(line, "pgdeactivate", 12) || !strncmp(line, "kswapd_", 7) || !strncmp(line, "pageoutrun", 10) || !strncmp(line, "pgrotated", 9) ||
		    !strncmp(line, "pswp", 4) || !strncmp(line, "pgsteal_", 8) || !strncmp(line, "pgmajfault", 10) || !strncmp(line, "workingset_", 11)) {
			line[strlen(line) - 1] = 0;
			printf(" %s", line);
		}
	fclose(f);
	for (int node = 0; node < 2; node++) {
		char path[80];
		unsigned long kb;
		sprintf(path, "/sys/devices/system/node/node%d/meminfo", node);
		if (!(f = fopen(path, "r")))
			continue;
		while (fgets(line, sizeof line, f)) {
			if (sscanf(line, "Node %*d MemFree: %lu", &kb) == 1)
				printf(" free%d %lu", node, kb / 4);
			if (sscanf(line, "Node %*d AnonPages: %lu", &kb) == 1)
				printf(" anon%d %lu", node, kb / 4);
			if (sscanf(line, "Node %*d FilePages: %lu", &kb) == 1)
				printf(" file%d %lu", node, kb / 4);
		}
		fclose(f);
	}
	puts("");
	fflush(stdout);
}

static volatile char *mem;
static uint64_t pages, tenth, share;
static uint32_t *popular;
static int is_file;

static void first_touch(uint64_t page)
{
	if (is_file)
		(void)mem[page * 4096];
	else
		mem[page * 4096] = 1;
}
#define TABLE (1 << 20)

static inline uint64_t pick(const char *pattern, uint64_t k, double t)
{
	uint64_t r = draw();
	switch (pattern[0]) {
	case 'm':
		return (r >> 32) % 100 < share ? ((uint64_t)(t / 5) * 3 % 10) * tenth + r % tenth : r % pages;
	case 'z':
		return popular[r % TABLE];
	case 's':
		return k % pages;
	default:
		return (r >> 32) % 100 < share ? pages - tenth + r % tenth : r % pages;
	}
}

static const char *shape;
static volatile double since;
static volatile uint64_t touched[8];

static void *other(void *arg)
{
	uint64_t me = (uint64_t)arg, k = me * pages / 8;
	state += me * 7919;
	for (;;) {
		double t = now() - since;
		for (int i = 0; i < 1000; i++)
			(void)mem[pick(shape, k++, t) * 4096];
		touched[me] += 1000;
	}
}

int main(int argc, char **argv)
{
	double seconds = atof(argv[2]);
	const char *pattern = argv[3];
	share = argc > 4 ? atol(argv[4]) : 90;
	pages = atol(argv[1]) * 256;
	tenth = pattern[0] == 'h' && pattern[1] == 'a' ? pages / 2 : pages / 10;
	if (pattern[0] == 'z') {
		// A table of draws: ranks by their weight, each at a place that a fixed shuffle gives it.
		uint32_t *place = malloc(pages * 4);
		double sum = 0, at = 0;
		popular = malloc(TABLE * 4);
		for (uint64_t i = 0; i < pages; i++)
			place[i] = i, sum += 1.0 / (i + 1);
		for (uint64_t i = pages - 1; i > 0; i--) {
			uint64_t j = draw() % (i + 1), p = place[i];
			place[i] = place[j], place[j] = p;
		}
		for (uint64_t i = 0, rank = 0; i < TABLE; i++) {
			while (rank + 1 < pages && (i + 0.5) / TABLE > (at + 1.0 / (rank + 1)) / sum)
				at += 1.0 / ++rank;
			popular[i] = place[rank];
		}
		free(place);
	}
	is_file = argc > 6;
	if (is_file)
		mem = mmap(0, pages * 4096, 3, MAP_SHARED, open(argv[6], O_RDWR), 0);
	else
		mem = mmap(0, pages * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	show(-1, 0);
	double t0 = now(), c0 = cpu();
	for (uint64_t i = 0; i < 4096; i++)
		first_touch(i);
	printf("anon_fault_ns %.0f\n", (cpu() - c0) / 4096 * 1e9);
	uint64_t of_all = pages, k = 0;
	pages = 4096;
	uint64_t of_tenth = tenth;
	tenth = 400;
	c0 = cpu();
	if (pattern[0] != 'z')
		for (int i = 0; i < 1000000; i++)
			(void)mem[pick(pattern, k++, 0) * 4096];
	else
		for (int i = 0; i < 1000000; i++)
			(void)mem[popular[draw() % TABLE] % 4096 * 4096];
	printf("access_ns %.1f\n", (cpu() - c0) / 1e6 * 1e9);
	pages = of_all, tenth = of_tenth;
	for (uint64_t i = 4096; i < pages; i++)
		first_touch(i);
	printf("filled %.2f\n", now() - t0);
	double start = now(), next = 2, t = 0;
	int threads = argc > 5 ? atoi(argv[5]) : 1;
	shape = pattern, since = start;
	for (uint64_t i = 1; i < threads; i++) {
		pthread_t id;
		pthread_create(&id, 0, other, (void *)i);
	}
	show(0, k = 0);
	while (t < seconds) {
		for (int i = 0; i < 1000; i++)
			(void)mem[pick(pattern, k++, t) * 4096];
		t = now() - start;
		if (t >= next && t < seconds)
			show(t, k), next += 2;
	}
	for (int i = 1; i < threads; i++)
		printf("thread %d n %lu\n", i, touched[i]);
	show(t, k);
	return 0;
}
