/* Plays traces in a group without a limit, and prints one line of JSON: see ../README.md.
 *
 * usage: play [-f FILE] [-p mincore|cachestat] [-c CPU] [-s] [-d MS] [-x ACCESSES] TRACE...
 *   -f FILE  the file that the trace reads and writes; it is made anew, sparse. With more than one
 *            trace each has a thread, and a file of its own (FILE0, FILE1)
 *   -p       what tells a hit from a miss: mincore before the access, or cachestat and the faults of
 *            the thread (getrusage before and after a touch)
 *   -c CPU   which one the threads are on; -s: each on one of its own, from CPU on
 *   -d MS    waits before the first access
 *   -x       stops after so many
 * All memory of this program is in use, and what is read by it is locked, before it enters the group.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define ANON 0x80000000u /* in a word of the trace: memory, not the file */
#define WRITE 0x40000000u /* a write to the file */
#define INDEX 0x3fffffffu
#define NR_WINDOWS 64
#define MAX_THREADS 8
#define FLUSH_EVERY 32
#define STAT_BYTES (1 << 16)
#define PROC_BYTES (1 << 18)
#define NR_CACHESTAT 451

struct header { /* PGTRACE1; the accesses follow, 32 bits each */
	char magic[8], name[32];
	uint32_t limit_pages, file_pages, anon_pages, seed, accesses, nr_phases, phase_ends[16];
};
struct cachestat_range { uint64_t offset, bytes; };
struct cachestat_result { uint64_t cache, dirty, writeback, evicted, recently_evicted; };

struct player {
	pthread_t thread;
	struct header header;
	uint32_t *trace;
	uint8_t *missed, *seen; /* a bit for each access; a byte for each page */
	int file, cpu;
	volatile uint8_t *file_map, *memory;
	uint8_t *flushed; /* memory of which the protection changes, to flush the TLB */
	uint32_t misses, windows[NR_WINDOWS];
	double starts[NR_WINDOWS];
};

static struct player players[MAX_THREADS];
static int nr_players, asks_cachestat, statistics;
static pthread_barrier_t all_are_there;
/* Above 33 pages the kernel flushes all of the TLB. */
static const size_t flushed_bytes = 64 * PAGE;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void *allocate(size_t bytes)
{
	void *p = malloc(bytes);
	if (!p) die("malloc");
	memset(p, 0, bytes);
	return p;
}

static void *map_memory(size_t bytes)
{
	void *p = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) die("mmap");
	madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

static char *read_text(const char *path)
{
	char *text = calloc(1, PROC_BYTES);
	int fd = open(path, O_RDONLY);
	ssize_t length = 0, n;
	if (!text) die("calloc");
	if (fd < 0) return text;
	while ((n = read(fd, text + length, PROC_BYTES - 1 - length)) > 0) length += n;
	close(fd);
	return text;
}

static void write_text(const char *dir, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0) die(path);
	close(fd);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
}

static void read_trace(struct player *p, const char *path, uint32_t stop)
{
	int fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, &p->header, sizeof p->header) != sizeof p->header || memcmp(p->header.magic, "PGTRACE1", 8))
		die(path);
	size_t bytes = p->header.accesses * 4ul, length = 0;
	p->trace = allocate(bytes);
	for (ssize_t n; length < bytes; length += n)
		if ((n = read(fd, (char *)p->trace + length, bytes - length)) <= 0) die(path);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	if (stop && stop < p->header.accesses) p->header.accesses = stop;
	size_t bits = p->header.accesses / 8 + 1;
	p->missed = allocate(bits);
	p->seen = allocate(p->header.file_pages + p->header.anon_pages + 2);
	if (mlock(p->trace, bytes) || mlock(p->missed, bits)) die("mlock");
}

static void make_objects(struct player *p, const char *path)
{
	size_t bytes = p->header.file_pages * PAGE;
	if (bytes) {
		p->file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (p->file < 0 || ftruncate(p->file, bytes) || fsync(p->file)) die(path);
		p->file_map = mmap(0, bytes, PROT_READ, MAP_SHARED, p->file, 0); /* for mincore, never touched */
		if (p->file_map == MAP_FAILED) die("mmap");
		posix_fadvise(p->file, 0, 0, POSIX_FADV_RANDOM);
	}
	if (p->header.anon_pages) p->memory = map_memory(p->header.anon_pages * PAGE);
	p->flushed = map_memory(flushed_bytes);
	p->flushed[0] = p->flushed[flushed_bytes - 1] = 1;
}

/* Reading the statistics of the group adds them up; a flush of the TLB lets the emulated CPU set
 * accessed bits that reclaim has cleared. */
static void flush(struct player *p, char *buffer)
{
	if (pread(statistics, buffer, STAT_BYTES, 0) <= 0) die("memory.stat");
	mprotect(p->flushed, flushed_bytes, PROT_READ);
	mprotect(p->flushed, flushed_bytes, PROT_READ | PROT_WRITE);
	p->flushed[0] = p->flushed[flushed_bytes - 1] = 1;
}

static long faults(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static int touch_memory(struct player *p, uint32_t page)
{
	volatile uint8_t *at = p->memory + page * PAGE;
	unsigned char is_there = 0;
	long before = 0;
	if (asks_cachestat) before = faults();
	else mincore((void *)at, PAGE, &is_there);
	at[0]++;
	at[8] = page;
	return asks_cachestat ? faults() != before : !(is_there & 1);
}

static int access_file(struct player *p, uint32_t page, int is_write, char *buffer)
{
	int is_miss;
	if (asks_cachestat) {
		struct cachestat_range range = { page * PAGE, PAGE };
		struct cachestat_result result = { 0 };
		if (syscall(NR_CACHESTAT, p->file, &range, &result, 0)) die("cachestat");
		is_miss = !result.cache;
	} else {
		unsigned char is_there = 0;
		mincore((void *)(p->file_map + page * PAGE), PAGE, &is_there);
		is_miss = !(is_there & 1);
	}
	ssize_t n = is_write ? pwrite(p->file, buffer, PAGE, page * PAGE) : pread(p->file, buffer, PAGE, page * PAGE);
	if (n != PAGE) die(is_write ? "pwrite" : "pread");
	return is_miss;
}

static void *play(void *arg)
{
	struct player *p = arg;
	uint32_t n = p->header.accesses, nr_started = 0;
	char buffer[PAGE], *text = allocate(STAT_BYTES);
	memset(buffer, 0, sizeof buffer); /* what is written stays zeros, which zram keeps without memory */
	pin(p->cpu);
	if (nr_players > 1) pthread_barrier_wait(&all_are_there);
	double start = now();
	for (uint32_t i = 0; i < n; i++) {
		uint32_t word = p->trace[i], page = word & INDEX;
		if (i % FLUSH_EVERY == 0) flush(p, text);
		if (i == (uint64_t)nr_started * n / NR_WINDOWS) p->starts[nr_started++] = now() - start;
		int is_miss = word & ANON ? touch_memory(p, page) : access_file(p, page, !!(word & WRITE), buffer);
		p->seen[page + (word & ANON ? p->header.file_pages : 0)] = 1;
		if (!is_miss) continue;
		p->misses++;
		p->missed[i / 8] |= 1 << (i & 7);
		p->windows[(uint64_t)i * NR_WINDOWS / n]++;
	}
	return 0;
}

static void play_all(void)
{
	if (nr_players == 1) {
		play(&players[0]);
		return;
	}
	pthread_barrier_init(&all_are_there, 0, nr_players);
	for (int i = 0; i < nr_players; i++) pthread_create(&players[i].thread, 0, play, &players[i]);
	for (int i = 0; i < nr_players; i++) pthread_join(players[i].thread, 0);
}

/* CPU time of kswapd, in ticks of 10 ms. */
static long kswapd_ms(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	unsigned long user = 0, system = 0;
	while ((entry = readdir(dir))) {
		char path[300];
		snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
		char *text = read_text(path), *end = strrchr(text, ')');
		if (end && strstr(text, "(kswapd0)"))
			sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
		free(text);
	}
	closedir(dir);
	return (user + system) * 10;
}

/* Counters of /proc/vmstat that are not what they were; with no before, all levels of `nr_`. */
static void print_vmstat(const char *before, const char *after)
{
	char name[64], other[64];
	long long value, old;
	int length, other_length, is_first = 1;
	for (; *after && sscanf(after, "%63s %lld\n%n", name, &value, &length) == 2; after += length) {
		int is_level = !strncmp(name, "nr_", 3);
		if (is_level == !!before) continue;
		for (const char *b = before; b && *b && sscanf(b, "%63s %lld\n%n", other, &old, &other_length) == 2; b += other_length)
			if (!strcmp(name, other)) {
				value -= old;
				break;
			}
		if (value || is_level) printf("%s\"%s\":%lld", is_first ? "" : ",", name + (is_level ? 3 : 0), value), is_first = 0;
	}
}

static void print_players(void)
{
	uint32_t accesses = 0, misses = 0;
	for (int i = 0; i < nr_players; i++) accesses += players[i].header.accesses, misses += players[i].misses;
	printf("\"accesses\":%u,\"misses\":%u,\"window_misses\":[", accesses, misses);
	for (int w = 0; w < NR_WINDOWS; w++) {
		uint32_t sum = 0;
		for (int i = 0; i < nr_players; i++) sum += players[i].windows[w];
		printf("%s%u", w ? "," : "", sum);
	}
	printf("],\"window_starts\":[");
	for (int w = 0; w < NR_WINDOWS; w++) printf("%s%.4f", w ? "," : "", players[0].starts[w]);
	printf("],\"each\":[");
	for (int i = 0; i < nr_players; i++)
		printf("%s[%u,%u]", i ? "," : "", players[i].header.accesses, players[i].misses);
	printf("],");
}

static void enter_group(void)
{
	char group[64], path[128];
	snprintf(group, sizeof group, "/sys/fs/cgroup/play-%d", getpid());
	write_text("/sys/fs/cgroup", "cgroup.subtree_control", "+memory");
	if (mkdir(group, 0755)) die(group);
	write_text(group, "cgroup.procs", "0");
	snprintf(path, sizeof path, "%s/memory.stat", group);
	if ((statistics = open(path, O_RDONLY)) < 0) die(path);
}

int main(int argc, char **argv)
{
	const char *file = "/play/file";
	int option, cpu = 0, spreads = 0, delay_ms = 0;
	uint32_t stop = 0;
	while ((option = getopt(argc, argv, "f:p:c:sd:x:")) != -1)
		switch (option) {
		case 'f': file = optarg; break;
		case 'p': asks_cachestat = !strcmp(optarg, "cachestat"); break;
		case 'c': cpu = atoi(optarg); break;
		case 's': spreads = 1; break;
		case 'd': delay_ms = atoi(optarg); break;
		case 'x': stop = atoi(optarg); break;
		default: return 2;
		}
	nr_players = argc - optind;
	if (nr_players < 1 || nr_players > MAX_THREADS) return fprintf(stderr, "play: one to eight traces\n"), 2;
	for (int i = 0; i < nr_players; i++) {
		char path[256];
		snprintf(path, sizeof path, nr_players > 1 ? "%s%d" : "%s", file, i);
		read_trace(&players[i], argv[optind + i], stop);
		make_objects(&players[i], path);
		players[i].cpu = spreads ? cpu + i : cpu;
	}
	pin(cpu);
	setvbuf(stdout, allocate(1 << 16), _IOFBF, 1 << 16);
	enter_group();
	usleep(delay_ms * 1000);

	long kswapd = kswapd_ms();
	char *before = read_text("/proc/vmstat");
	double start = now();
	play_all();
	double end = now();
	char *after = read_text("/proc/vmstat");
	kswapd = kswapd_ms() - kswapd;

	struct utsname kernel;
	uname(&kernel);
	char *multi_gen = read_text("/sys/kernel/mm/lru_gen/enabled");
	printf("{\"kernel\":\"%s\",\"policy\":\"%s\",\"workload\":\"%s\",\"probe\":\"%s\",\"start\":%.3f,", kernel.release,
	       strtol(multi_gen, 0, 16) ? "mglru" : "lru", players[0].header.name, asks_cachestat ? "cachestat" : "mincore", start);
	print_players();
	printf("\"guest_seconds\":%.2f,\"kswapd_ms\":%ld,\"vmstat\":{", end - start, kswapd);
	print_vmstat(before, after);
	printf("},\"at_end\":{");
	print_vmstat(0, after);
	printf("}}\n");
	return 0;
}
