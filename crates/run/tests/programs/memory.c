/* A program that takes memory in one of many ways. `memory map KIND PLACE MIB` fills so much, holds
   it for a moment and checks it; `memory move KIND PAGES ROUNDS` moves pages about and checks them;
   `memory forks N MIB ROUNDS` has processes read what they share. Status 77: the system refuses
   that. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul
#define SKIPPED 77
#define HOLD_US 150000

static const char *kind;
static size_t bytes;

static void refuse(const char *what) {
    perror(what);
    exit(SKIPPED);
}

static char *mapped(int flags, int fd) {
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (at == MAP_FAILED)
        refuse("mmap");
    return at;
}

static char *grown(void) {
    char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at = mremap(at, PAGE, bytes, MREMAP_MAYMOVE);
    if (at == MAP_FAILED)
        refuse("mremap");
    return at;
}

static char *sysv(void) {
    int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
    char *at = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
    if (at == (char *)-1)
        refuse("shmget");
    shmctl(id, IPC_RMID, NULL);
    return at;
}

static char *of_memfd(int flags) {
    int fd = memfd_create("memory", 0);
    if (fd < 0 || ftruncate(fd, bytes) < 0)
        refuse("memfd_create");
    return mapped(flags, fd);
}

static char *made(void) {
    int own = MAP_PRIVATE | MAP_ANONYMOUS;
    if (!strcmp(kind, "private"))
        return mapped(own, -1);
    if (!strcmp(kind, "populate"))
        return mapped(own | MAP_POPULATE, -1);
    if (!strcmp(kind, "locked"))
        return mapped(own | MAP_LOCKED, -1);
    if (!strcmp(kind, "noreserve"))
        return mapped(own | MAP_NORESERVE, -1);
    if (!strcmp(kind, "raw-populate"))
        return (char *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, own | MAP_POPULATE, -1, 0);
    if (!strcmp(kind, "grown"))
        return grown();
    if (!strcmp(kind, "shared"))
        return mapped(MAP_SHARED | MAP_ANONYMOUS, -1);
    if (!strcmp(kind, "shared-populate"))
        return mapped(MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1);
    if (!strcmp(kind, "memfd"))
        return of_memfd(MAP_SHARED);
    if (!strcmp(kind, "memfd-private"))
        return of_memfd(MAP_PRIVATE);
    if (!strcmp(kind, "zero"))
        return mapped(MAP_PRIVATE, open("/dev/zero", O_RDWR));
    if (!strcmp(kind, "sysv"))
        return sysv();
    if (!strcmp(kind, "hugetlb"))
        return mapped(own | MAP_HUGETLB, -1);
    fprintf(stderr, "no such kind: %s\n", kind);
    exit(2);
}

static uint64_t word(size_t page) {
    return page * 0x9E3779B97F4A7C15ul + 1;
}

static void fill(char *at) {
    for (size_t i = 0; i < bytes / PAGE; i++)
        *(uint64_t *)(at + i * PAGE) = word(i);
}

static void check(char *at) {
    for (size_t i = 0; i < bytes / PAGE; i++)
        if (*(uint64_t *)(at + i * PAGE) != word(i)) {
            printf("page %zu is wrong\n", i);
            exit(3);
        }
}

static void *map_here(void *unused) {
    char *at = made();
    fill(at);
    usleep(HOLD_US);
    check(at);
    return unused;
}

static int map(const char *place) {
    pthread_t thread;
    if (!strcmp(place, "thread")) {
        pthread_create(&thread, NULL, map_here, NULL);
        pthread_join(thread, NULL);
    } else if (!strcmp(place, "fork")) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            map_here(NULL);
            exit(0);
        }
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (!strcmp(place, "both")) {
        /* Filled by one, and read by both. */
        char *at = made();
        fill(at);
        pid_t child = fork();
        check(at);
        usleep(HOLD_US);
        if (child == 0)
            exit(0);
        waitpid(child, NULL, 0);
    } else {
        map_here(NULL);
    }
    return 0;
}

static __thread char *pages;
static __thread size_t *is_at;
static size_t n_pages;
static int n_rounds;

static void move(size_t from, size_t to, int flags) {
    if (mremap(pages + from * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED | flags, pages + to * PAGE) == MAP_FAILED) {
        perror("mremap");
        exit(4);
    }
    is_at[to] = is_at[from];
}

/* Moves of `n` pages, and one that nothing is at: pages are moved one by one, in ways that come to the
   same where the order is not known. */
static int move_about(size_t n, int rounds) {
    size_t spare = n;
    pages = mmap(NULL, (n + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    is_at = malloc((n + 1) * sizeof *is_at);
    for (size_t i = 0; i < n; i++) {
        is_at[i] = i;
        for (size_t k = 0; k < PAGE / 8; k++)
            ((uint64_t *)(pages + i * PAGE))[k] = word(i) + k * 0x2545F4914F6CDD1Dul;
    }
    for (int r = 0; r < rounds; r++) {
        size_t span = 48, first = (size_t)r * 37 % (n - span);
        if (!strcmp(kind, "swap")) {
            for (size_t i = first; i + 1 < first + span; i += 2) {
                move(i, spare, 0);
                move(i + 1, i, 0);
                move(spare, i + 1, 0);
            }
        } else {
            int kept = !strcmp(kind, "dontunmap") ? MREMAP_DONTUNMAP : 0;
            move(first, spare, kept);
            for (size_t i = first; i + 1 < first + span; i++)
                move(i + 1, i, kept);
            move(spare, first + span - 1, kept);
        }
        if (!strcmp(kind, "forks") && r % 20 == 0) {
            pid_t child = fork();
            if (child == 0) {
                for (size_t i = first; i < first + span; i++)
                    if (*(uint64_t *)(pages + i * PAGE) != word(is_at[i]))
                        _exit(1);
                _exit(0);
            }
            int status;
            waitpid(child, &status, 0);
            if (status != 0)
                return 5;
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < PAGE / 8; k++)
            if (((uint64_t *)(pages + i * PAGE))[k] != word(is_at[i]) + k * 0x2545F4914F6CDD1Dul) {
                printf("page %zu is wrong\n", i);
                return 3;
            }
    return 0;
}

static void *move_in_thread(void *result) {
    *(int *)result = move_about(n_pages, n_rounds);
    return NULL;
}

static void *sleep_on(void *nothing) {
    pause();
    return nothing;
}

/* The same in a process of several threads: `idle`: one moves and one does nothing; `threads`: two
   move, each its own pages. */
static int move_in_threads(void) {
    pthread_t other;
    int result = 0;
    int is_idle = !strcmp(kind, "idle");
    if (pthread_create(&other, NULL, is_idle ? sleep_on : move_in_thread, &result) != 0)
        return SKIPPED;
    int own = move_about(n_pages, n_rounds);
    if (!is_idle)
        pthread_join(other, NULL);
    return own ? own : result;
}

static int forks(int n, int rounds) {
    char *at = malloc(bytes);
    unsigned seed = 1;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (seed = seed * 1664525 + 1013904223) >> 24;
    fill(at);
    for (int k = 0; k < n; k++)
        if (fork() == 0) {
            for (int r = 0; r < rounds; r++)
                check(at);
            _exit(0);
        }
    int status, wrong = 0, killed = 0;
    while (wait(&status) > 0) {
        killed += WIFSIGNALED(status);
        wrong += WIFEXITED(status) && WEXITSTATUS(status) != 0;
    }
    printf("%d of %d were killed, %d were wrong\n", killed, n, wrong);
    return wrong != 0;
}

int main(int count, char **words) {
    if (count != 5)
        return 2;
    kind = words[2];
    if (!strcmp(words[1], "map")) {
        bytes = (size_t)atol(words[4]) << 20;
        return map(words[3]);
    }
    if (!strcmp(words[1], "move"))
        n_pages = atol(words[3]), n_rounds = atoi(words[4]);
    if (!strcmp(words[1], "move") && (!strcmp(kind, "idle") || !strcmp(kind, "threads")))
        return move_in_threads();
    if (!strcmp(words[1], "move"))
        return move_about(n_pages, n_rounds);
    bytes = (size_t)atol(words[3]) << 20;
    return forks(atoi(words[2]), atoi(words[4]));
}
