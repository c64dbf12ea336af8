/* A search over a mapped index of vectors: a graph of nodes, one to a page, of which a query visits
 * some forty. It stands for an HNSW or DiskANN index, or for any file that is mapped and read at random.
 *
 * usage: search make FILE NODES
 *        search run FILE QUERIES [LOG]     LOG gets the number of each page that is touched, a line each
 *        search random FILE QUERIES        the same with MADV_RANDOM: no pages are read around a fault
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { PAGE = 4096, NEIGHBOURS = 32, FLOATS = 768, HOPS = 40 };

struct node {
	uint32_t neighbour[NEIGHBOURS];
	float vector[FLOATS];
	char rest[PAGE - 4 * NEIGHBOURS - 4 * FLOATS];
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* Some nodes are near many others, and many near few: a cube of a uniform number, scattered. */
static uint32_t popular(uint64_t chance, uint32_t nodes)
{
	double u = (chance >> 11) * 0x1p-53;
	uint64_t rank = u * u * u * nodes;
	return rank * 2654435761u % nodes;
}

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int make(const char *path, uint32_t nodes)
{
	FILE *file = fopen(path, "w");
	static struct node node;
	if (!file)
		return fail(path);
	for (uint32_t n = 0; n < nodes; n++) {
		for (int i = 0; i < NEIGHBOURS; i++)
			node.neighbour[i] = popular(mix((uint64_t)n * NEIGHBOURS + i + 1), nodes);
		for (int i = 0; i < FLOATS; i++)
			node.vector[i] = mix(n + i) * 0x1p-64;
		if (fwrite(&node, sizeof(node), 1, file) != 1)
			return fail(path);
	}
	return fclose(file) ? fail(path) : 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "make"))
		return make(argv[2], atoi(argv[3]));
	if (argc < 4)
		return fprintf(stderr, "usage: search make|run|random FILE NUMBER [LOG]\n"), 2;
	int fd = open(argv[2], O_RDONLY);
	struct stat stat;
	if (fd < 0 || fstat(fd, &stat))
		return fail(argv[2]);
	uint32_t nodes = stat.st_size / PAGE;
	const struct node *index = mmap(NULL, stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (index == MAP_FAILED)
		return fail("mmap");
	if (!strcmp(argv[1], "random"))
		madvise((void *)index, stat.st_size, MADV_RANDOM);
	FILE *log = argc > 4 ? fopen(argv[4], "w") : NULL;
	float sum = 0;
	for (uint64_t query = 0, n = atoi(argv[3]); query < n; query++) {
		uint32_t at = mix(query) % 16; /* where all searches begin */
		for (int hop = 0; hop < HOPS; hop++) {
			const struct node *node = &index[at];
			if (log)
				fprintf(log, "%u\n", at);
			for (int i = 0; i < FLOATS; i++)
				sum += node->vector[i] * (query % 7);
			at = node->neighbour[mix(query * HOPS + hop) % NEIGHBOURS];
		}
	}
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("%ld major faults, %.1f MiB read (%g)\n", usage.ru_majflt, usage.ru_inblock / 2048.0, sum);
	return log && fclose(log) ? fail(argv[4]) : 0;
}
