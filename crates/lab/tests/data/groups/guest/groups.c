/* Plays a case with several groups in a guest, and prints one line of JSON: see ../README.md.
 *
 * usage: groups CASE DELAY_MS
 *
 * A case is lines: `group PATH [KEY PAGES]...`, `play PATH KIND PATTERN PAGES ACCESSES NS SEED START`,
 * `at MS set PATH KEY PAGES`, `at MS reclaim PATH PAGES`, `at MS remove PATH`. KIND is file, anon, or noise: anon
 * that compresses to 1 / 2.2. PATTERN uniform, zipf or loop; a block of 32 accesses is due every 32 * NS nanoseconds, and START ms
 * is when the first one is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define MAX_GROUPS 128
#define MAX_PLAYERS 128
#define MAX_ACTS 128
#define NR_WINDOWS 64
#define BLOCK 32
#define TABLE (1 << 16)
#define TEXT (1 << 18)
/* Bytes of a page of noise that nothing compresses. */
#define NOISE (1840 / 8)
#define ROOT "/sys/fs/cgroup"

struct player {
	char group[32], kind[8], pattern[8];
	uint64_t pages, accesses, ns, state, start_ms;
	/* Where the parent finds them: by the second in which a block was due. */
	volatile uint32_t *did, *missed;
	volatile uint64_t *ended_ns;
	pid_t pid;
};
struct act { uint64_t ms, pages; char verb[16], group[32], key[24]; };

static struct player players[MAX_PLAYERS];
static struct act acts[MAX_ACTS];
static char groups[MAX_GROUPS][32], buffer[TEXT];
static int nr_players, nr_acts, nr_groups;
static uint32_t seconds;
static uint32_t usage[MAX_GROUPS][NR_WINDOWS];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0)) {}
}

static char *text_of(const char *group, const char *name)
{
	char path[128];
	snprintf(path, sizeof path, "%s%s/%s", ROOT, group, name);
	int fd = open(name[0] == '/' ? name : path, O_RDONLY);
	ssize_t length = 0, n;
	while (fd >= 0 && (n = read(fd, buffer + length, TEXT - 1 - length)) > 0) length += n;
	if (fd >= 0) close(fd);
	buffer[length] = 0;
	return buffer;
}

static int try_set(const char *group, const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof path, "%s%s/%s", ROOT, group, name);
	int fd = open(path, O_WRONLY), failed = fd < 0 || write(fd, text, strlen(text)) < 0 ? errno : 0;
	close(fd);
	return failed;
}

static void set(const char *group, const char *name, const char *text)
{
	errno = try_set(group, name, text);
	if (errno) die(name);
}

static int set_pages(const char *group, const char *key, uint64_t pages)
{
	char name[40], text[32];
	snprintf(name, sizeof name, "memory.%s", key);
	if (!strcmp(key, "swap_max")) strcpy(name, "memory.swap.max");
	if (!strcmp(key, "zswap_max")) strcpy(name, "memory.zswap.max");
	snprintf(text, sizeof text, "%lu", pages * PAGE);
	return try_set(group, name, text);
}

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 11;
}

/* Popular pages are strewn over the object: TABLE draws of ranks, by the weight 1 / rank. */
static uint32_t *zipf_table(uint64_t pages)
{
	uint32_t *place = malloc(pages * 4), *table = malloc(TABLE * 4);
	uint64_t state = 88172645463325252ull;
	double sum = 0, at = 0;
	for (uint64_t i = 0; i < pages; i++) place[i] = i, sum += 1.0 / (i + 1);
	for (uint64_t i = pages - 1; i > 0; i--) {
		uint64_t j = draw(&state) % (i + 1), p = place[i];
		place[i] = place[j], place[j] = p;
	}
	for (uint64_t i = 0, rank = 0; i < TABLE; i++) {
		while (rank + 1 < pages && (i + 0.5) / TABLE > (at + 1.0 / (rank + 1)) / sum) at += 1.0 / ++rank;
		table[i] = place[rank];
	}
	free(place);
	return table;
}

/* A change of its protection flushes the TLB: an emulated CPU sets accessed bits only then. */
static void flush(volatile char *memory)
{
	mprotect((char *)memory, 64 * PAGE, PROT_READ);
	mprotect((char *)memory, 64 * PAGE, PROT_READ | PROT_WRITE);
	memory[0] = memory[64 * PAGE - 1] = 1;
}

static void fill(volatile uint64_t *page, uint64_t at)
{
	uint64_t state = (at + 1) * 0x9e3779b97f4a7c15ull;
	for (int i = 2; i < 2 + NOISE; i++) page[i] = draw(&state) * 0x9e3779b97f4a7c15ull;
}

static void play(struct player *p, int index, uint64_t start)
{
	uint32_t *table = p->pattern[0] == 'z' ? zipf_table(p->pages) : 0;
	int is_file = p->kind[0] == 'f', is_noise = p->kind[0] == 'n', file = -1;
	char path[64], page[PAGE];
	char *flushed = mmap(0, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(page, 0, sizeof page);
	if (is_file) {
		snprintf(path, sizeof path, "/play/file%d", index);
		file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (file < 0 || ftruncate(file, p->pages * PAGE) || fsync(file)) die(path);
		posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
	}
	if (mlockall(MCL_CURRENT)) die("mlockall");
	volatile uint8_t *map = is_file ? mmap(0, p->pages * PAGE, PROT_READ, MAP_SHARED, file, 0) :
		mmap(0, p->pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED) die("mmap");
	set(p->group, "cgroup.procs", "0");
	start += p->start_ms * 1000000;
	for (uint64_t i = 0; i < p->accesses; i++) {
		if (i % BLOCK == 0) {
			sleep_until(start + i * p->ns);
			if (!is_file) flush(flushed);
		}
		uint64_t at = p->pattern[0] == 'l' ? i % p->pages : draw(&p->state);
		at = table ? table[at % TABLE] : at % p->pages;
		uint32_t window = (p->start_ms + i * p->ns / 1000000) / 1000;
		unsigned char is_there = 0;
		mincore((void *)(map + at * PAGE), PAGE, &is_there);
		if (is_file) {
			if (pread(file, page, PAGE, at * PAGE) != PAGE) die("pread");
		} else {
			if (is_noise && !map[at * PAGE + 9]) fill((volatile uint64_t *)(map + at * PAGE), at);
			map[at * PAGE]++, map[at * PAGE + 8] = at, map[at * PAGE + 9] = 1;
		}
		p->did[window]++;
		p->missed[window] += !(is_there & 1);
	}
	*p->ended_ns = now() - start;
}

static void read_case(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[256], key[24];
	unsigned long pages;
	if (!f) die(path);
	while (fgets(line, sizeof line, f)) {
		struct player *p = &players[nr_players];
		struct act *a = &acts[nr_acts];
		int length;
		if (sscanf(line, "group %31s%n", groups[nr_groups], &length) == 1) {
			char dir[64], top[64];
			snprintf(dir, sizeof dir, ROOT "%s", groups[nr_groups]);
			if (mkdir(dir, 0755)) die(dir);
			/* Groups above others hand the controller on. */
			snprintf(top, sizeof top, "%s", groups[nr_groups]);
			*strrchr(top, '/') = 0;
			if (*top) set(top, "cgroup.subtree_control", "+memory");
			for (const char *at = line + length; sscanf(at, " %23s %lu%n", key, &pages, &length) == 2; at += length)
				if (set_pages(groups[nr_groups], key, pages)) die(key);
			nr_groups++;
		} else if (sscanf(line, "play %31s %7s %7s %lu %lu %lu %lu %lu", p->group, p->kind, p->pattern, &p->pages,
				  &p->accesses, &p->ns, &p->state, &p->start_ms) == 8) {
			p->state = p->state * 0x9e3779b97f4a7c15ull;
			uint32_t last = (p->start_ms + p->accesses * p->ns / 1000000) / 1000 + 1;
			if (last > seconds) seconds = last;
			nr_players++;
		} else if (sscanf(line, "at %lu set %31s %23s %lu", &a->ms, a->group, a->key, &a->pages) == 4)
			strcpy(a->verb, "set"), nr_acts++;
		else if (sscanf(line, "at %lu %15s %31s %lu", &a->ms, a->verb, a->group, &a->pages) >= 3)
			nr_acts++;
	}
	fclose(f);
	if (seconds > NR_WINDOWS) seconds = NR_WINDOWS;
}

static void act(struct act *a)
{
	char dir[64], text[32];
	int failed = 0;
	uint64_t begin = now();
	if (!strcmp(a->verb, "set")) failed = set_pages(a->group, a->key, a->pages);
	else if (!strcmp(a->verb, "reclaim")) {
		snprintf(text, sizeof text, "%lu", a->pages * PAGE);
		failed = try_set(a->group, "memory.reclaim", text);
	} else {
		for (int i = 0; i < nr_players; i++)
			if (!strcmp(players[i].group, a->group)) waitpid(players[i].pid, 0, 0), players[i].pid = 0;
		snprintf(dir, sizeof dir, ROOT "%s", a->group);
		failed = rmdir(dir) ? errno : 0;
	}
	printf("\"act_%s%s_%lu\":[%d,%lu],", a->verb, a->group, a->ms, failed, (now() - begin) / 1000);
}

static uint64_t number_of(const char *text, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, name, length) && at[length] == ' ') return strtoull(at + length, 0, 10);
	}
	return 0;
}

/* Counters that a group or the machine has, those that are zero left out. */
static void print_counters(const char *text, const char **names, const char *prefix)
{
	for (; *names; names++)
		if (number_of(text, *names)) printf(",\"%s%s\":%lu", prefix, *names, number_of(text, *names));
}

static const char *of_group[] = { "anon", "file", "inactive_anon", "active_anon", "inactive_file", "active_file",
	"pagetables", "slab", "workingset_refault_anon", "workingset_refault_file", "workingset_activate_anon",
	"workingset_activate_file", "pgscan_kswapd", "pgscan_direct", "pgscan_proactive", "pgsteal_kswapd",
	"pgsteal_direct", "pgsteal_proactive", "pswpin", "pswpout", "zswpin", "zswpout", "zswpwb", 0 };
static const char *of_machine[] = { "pgscan_kswapd", "pgscan_direct", "pgsteal_kswapd", "pgsteal_direct", "pgscan_anon",
	"pgscan_file", "pgsteal_anon", "pgsteal_file", "pageoutrun", "allocstall_normal", "allocstall_dma32",
	"allocstall_movable", "pswpin", "pswpout", "workingset_refault_anon", "workingset_refault_file", 0 };
static const char *events[] = { "low", "high", "max", "oom", "oom_kill", 0 };

/* Pages that nobody else has: managed, free, those on CPUs' lists, and on the lists of the LRU. */
static void print_machine(const char *name)
{
	uint64_t managed = 0, counts = 0, n;
	for (char *at = text_of("", "/proc/zoneinfo"); at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (sscanf(at, " managed %lu", &n) == 1) managed += n;
		if (sscanf(at, " count: %lu", &n) == 1) counts += n;
	}
	char *v = text_of("", "/proc/vmstat");
	printf("\"%s\":[%lu,%lu,%lu,%lu,%lu,%lu,%lu],", name, managed, number_of(v, "nr_free_pages"), counts,
	       number_of(v, "nr_inactive_anon"), number_of(v, "nr_active_anon"), number_of(v, "nr_inactive_file"),
	       number_of(v, "nr_active_file"));
}

int main(int argc, char **argv)
{
	uint64_t delay = argc > 2 ? atol(argv[2]) : 0;
	set("", "cgroup.subtree_control", "+memory");
	read_case(argv[1]);
	volatile uint32_t *shared = mmap(0, 2 * nr_players * NR_WINDOWS * 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	volatile uint64_t *ended = mmap(0, nr_players * 8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setvbuf(stdout, malloc(1 << 18), _IOFBF, 1 << 18);
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) die("mlockall");
	uint64_t start = now() + 500000000, earliest = 7000000000ull;
	if (nr_players > 20) earliest += 3000000000ull;
	if (start < earliest) start = earliest;
	start += delay * 1000000;
	for (int i = 0; i < nr_players; i++) {
		struct player *p = &players[i];
		p->did = shared + 2 * i * NR_WINDOWS, p->missed = p->did + NR_WINDOWS, p->ended_ns = &ended[i];
		if (!(p->pid = fork())) {
			play(p, i, start);
			_exit(0);
		}
	}
	sleep_until(start - 50000000);
	struct utsname kernel;
	uname(&kernel);
	printf("{\"kernel\":\"%s\",\"policy\":\"%s\",\"case\":\"%s\",\"start\":%.3f,\"min_free_kbytes\":%lu,", kernel.release,
	       strtol(text_of("", "/sys/kernel/mm/lru_gen/enabled"), 0, 16) ? "mglru" : "lru", strrchr(argv[1], '/') + 1,
	       start / 1e9, strtoul(text_of("", "/proc/sys/vm/min_free_kbytes"), 0, 10));
	print_machine("before");
	for (uint64_t second = 0; second < seconds; second++) {
		for (int i = 0; i < nr_acts; i++)
			if (acts[i].ms / 1000 == second) sleep_until(start + acts[i].ms * 1000000), act(&acts[i]);
		sleep_until(start + (second + 1) * 1000000000);
		for (int g = 0; g < nr_groups; g++)
			usage[g][second] = strtoull(text_of(groups[g], "memory.current"), 0, 10) / PAGE;
	}
	/* One that sleeps beyond its limit may be late: it has as long again. */
	for (int n = 0; n < 100; n++) {
		int is_over = 1;
		for (int i = 0; i < nr_players; i++) is_over &= !!ended[i];
		if (is_over) break;
		sleep_until(start + (seconds * 1000ull + (n + 1) * 100) * 1000000);
	}
	char *text = text_of("", "/proc/vmstat");
	printf("\"vmstat\":{\"_\":0");
	print_counters(text, of_machine, "");
	printf("},");
	print_machine("after");
	printf("\"groups\":{");
	for (int g = 0; g < nr_groups; g++) {
		printf("%s\"%s\":{\"current\":[", g ? "," : "", groups[g]);
		for (uint32_t s = 0; s < seconds; s++) printf("%s%u", s ? "," : "", usage[g][s]);
		printf("]");
		print_counters(text_of(groups[g], "memory.stat"), of_group, "");
		print_counters(text_of(groups[g], "memory.events"), events, "events_");
		print_counters(text_of(groups[g], "memory.swap.events"), events, "swap_events_");
		text = text_of(groups[g], "memory.pressure");
		if (strstr(text, "total=")) printf(",\"some_us\":%lu", strtoul(strstr(text, "total=") + 6, 0, 10));
		printf("}");
	}
	printf("},\"tasks\":[");
	for (int i = 0; i < nr_players; i++) {
		printf("%s{\"group\":\"%s\",\"ms\":%lu,\"did\":[", i ? "," : "", players[i].group, ended[i] / 1000000);
		for (uint32_t s = 0; s < seconds; s++) printf("%s%u", s ? "," : "", players[i].did[s]);
		printf("],\"missed\":[");
		for (uint32_t s = 0; s < seconds; s++) printf("%s%u", s ? "," : "", players[i].missed[s]);
		printf("]}");
	}
	printf("]}\n");
	return 0;
}
