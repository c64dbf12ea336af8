/* Maps a file and reads a byte of so many pages of it at random: the page is the POWERth power of a
 * uniform number. usage: mapped FILE COUNT POWER */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
	struct stat about;
	int fd = argc == 4 ? open(argv[1], O_RDONLY) : -1;
	if (fd < 0 || fstat(fd, &about)) return 2;
	volatile const unsigned char *all = mmap(0, about.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (all == MAP_FAILED) return 2;
	uint64_t pages = about.st_size / 4096, state = 88172645463325252u, sum = 0;
	long count = atol(argv[2]);
	int power = atoi(argv[3]);
	for (long i = 0; i < count; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		double uniform = (state >> 11) / 9007199254740992.0, at = 1;
		for (int p = 0; p < power; p++) at *= uniform;
		sum += all[(uint64_t)(at * pages) * 4096];
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
