/*
 * Touches pages of a mapped file.
 *
 * usage: mapped FILE PATTERN TOUCHES THREADS ADVICE
 *   PATTERN  uniform, skewed (the cube of a uniform number), sequential, strided (every 37th page)
 *   ADVICE   normal, random, sequential: madvise of the whole mapping
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const volatile unsigned char *map;
static uint64_t pages, touches;
static const char *pattern;

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t page(uint64_t i, uint64_t *state)
{
	double x = (next(state) >> 11) / 9007199254740992.0;
	switch (pattern[1]) {
	case 'n':
		return x * pages;
	case 'k':
		return x * x * x * pages;
	case 'e':
		return i % pages;
	default:
		return i * 37 % pages;
	}
}

static void *run(void *seed)
{
	uint64_t state = (uintptr_t)seed * 0x9e3779b97f4a7c15, sum = 0;

	for (uint64_t i = 0; i < touches; i++) {
		uint64_t at = page(i, &state);
		sum += map[at << 12];
	}
	return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv)
{
	pthread_t thread[16];
	struct stat st;
	int file, advice, threads;

	if (argc != 6 || (threads = atoi(argv[4])) < 1 || threads > 16)
		return 2;
	file = open(argv[1], O_RDONLY);
	if (file < 0 || fstat(file, &st))
		return 1;
	pattern = argv[2];
	touches = strtoull(argv[3], 0, 10) / threads;
	pages = st.st_size >> 12;
	map = mmap(0, st.st_size, PROT_READ, MAP_SHARED, file, 0);
	advice = *argv[5] == 'r' ? MADV_RANDOM : *argv[5] == 's' ? MADV_SEQUENTIAL : MADV_NORMAL;
	if (map == MAP_FAILED || madvise((void *)map, st.st_size, advice))
		return 1;
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], 0, run, (void *)(uintptr_t)(i + 1)))
			return 1;
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], 0);
	return 0;
}
