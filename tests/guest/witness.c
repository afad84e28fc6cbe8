/*
 * What the kernel says about its own process: the node of each page, and where each thread may run. It asks by system
 * calls and in /proc, and knows nothing of Gondwana.
 *
 *   witness pages malloc|mmap COUNT   touches so many pages, one after the other, and prints the node of each
 *   witness frames COUNT              allocates and touches so many pages, no multiple of 7, and prints the number of each one's
 *                                     page frame, or zeros if the kernel does not tell
 *   witness block COUNT               allocates and touches so many pages, says where, and waits to be killed
 *   witness threads COUNT             starts so many threads and prints the processors and nodes that each may use,
 *                                     and the nodes of pages that it touches
 *   witness hold COUNT...             puts so many pages on node 0, node 1 and so on, says where, and waits to be killed
 *   witness job PROGRAM...            runs a program as shells with job control do, so that SIGTSTP stops it
 */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define MOST_THREADS 64
#define OWN_PAGES 6 /* of each thread */

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static char *map(size_t pages)
{
    char *start = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        fail("mmap");
    return start;
}

/* Touches a block of so many pages, says where it is, and waits to be killed. */
static int block(size_t count)
{
    char *start = malloc(count * PAGE);
    memset(start, 1, count * PAGE);
    printf("%d %lx\n", getpid(), (unsigned long)start);
    fflush(stdout);
    pause();
    return 1;
}

/* Touches pages and writes the node of each as a digit, or a dot for a page that is nowhere. */
static void touch(char *start, size_t pages, char *digits)
{
    void **addresses = malloc(pages * sizeof *addresses);
    int *nodes = malloc(pages * sizeof *nodes);
    for (size_t page = 0; page < pages; page++) {
        start[page * PAGE] = 1;
        addresses[page] = start + page * PAGE;
    }
    if (syscall(SYS_move_pages, 0, pages, addresses, NULL, nodes, 0) != 0)
        fail("move_pages");
    for (size_t page = 0; page < pages; page++)
        digits[page] = nodes[page] < 0 ? '.' : '0' + nodes[page];
    digits[pages] = '\0';
    free(addresses);
    free(nodes);
}

static int pages(const char *from, size_t count)
{
    char *start;
    if (strcmp(from, "malloc") == 0) {
        /* One page more: the first whole page of a block follows what malloc puts before it. */
        char *block = malloc((count + 1) * PAGE);
        start = block + (PAGE - (unsigned long)block % PAGE) % PAGE;
    } else {
        start = map(count);
    }
    char *digits = malloc(count + 1);
    touch(start, count, digits);
    puts(digits);
    return 0;
}

static int frames(size_t count)
{
    char *start = malloc(count * PAGE);
    FILE *map = fopen("/proc/self/pagemap", "r");
    if ((unsigned long)start % PAGE != 0) {
        fprintf(stderr, "the block does not begin with a page\n");
        return 1;
    }
    /* Frames that happen to be free one after the other must not make pages that are. */
    for (size_t turn = 0; turn < count; turn++)
        memset(start + turn * 7 % count * PAGE, 1, PAGE);
    if (map == NULL || fseeko(map, (unsigned long)start / PAGE * 8, SEEK_SET) != 0)
        fail("pagemap");
    for (size_t page = 0; page < count; page++) {
        unsigned long entry;
        if (fread(&entry, sizeof entry, 1, map) != 1)
            fail("pagemap");
        printf("%lu\n", entry & ((1UL << 55) - 1));
    }
    return 0;
}

static pthread_barrier_t all_there;
static char lines[MOST_THREADS][256];

static void *say_where(void *line)
{
    char path[64], text[256], processors[100] = "", nodes[100] = "", digits[OWN_PAGES + 1];
    /* Nobody ends before all have begun: a place that one leaves must not be given to the next. */
    pthread_barrier_wait(&all_there);
    snprintf(path, sizeof path, "/proc/self/task/%ld/status", syscall(SYS_gettid));
    FILE *status = fopen(path, "r");
    if (status == NULL)
        fail(path);
    while (fgets(text, sizeof text, status) != NULL) {
        sscanf(text, "Cpus_allowed_list: %99s", processors);
        sscanf(text, "Mems_allowed_list: %99s", nodes);
    }
    fclose(status);
    touch(map(OWN_PAGES), OWN_PAGES, digits);
    snprintf(line, sizeof lines[0], "processors %s nodes %s pages %s", processors, nodes, digits);
    return NULL;
}

static int threads(int count)
{
    pthread_t thread[MOST_THREADS];
    if (count < 1 || count > MOST_THREADS)
        return 2;
    pthread_barrier_init(&all_there, NULL, count);
    for (int i = 0; i < count; i++)
        if (pthread_create(&thread[i], NULL, say_where, lines[i]) != 0)
            fail("pthread_create");
    for (int i = 0; i < count; i++) {
        pthread_join(thread[i], NULL);
        puts(lines[i]);
    }
    return 0;
}

static int hold(int nodes, char **counts)
{
    size_t total = 0, page = 0;
    for (int node = 0; node < nodes; node++)
        total += strtoul(counts[node], NULL, 10);
    char *start = map(total);
    madvise(start, total * PAGE, MADV_NOHUGEPAGE);
    for (int node = 0; node < nodes; node++) {
        size_t count = strtoul(counts[node], NULL, 10);
        unsigned long mask = 1UL << node;
        if (count > 0 && syscall(SYS_mbind, start + page * PAGE, count * PAGE, MPOL_BIND, &mask, 65UL, 0) != 0)
            fail("mbind");
        for (size_t end = page + count; page < end; page++)
            start[page * PAGE] = 1;
    }
    printf("%d %lx-%lx\n", getpid(), (unsigned long)start, (unsigned long)(start + total * PAGE));
    fflush(stdout);
    pause();
    return 1;
}

static int job(char **words)
{
    int status;
    pid_t leader = fork();
    if (leader == 0) {
        setpgid(0, 0);
        execvp(words[0], words);
        fail(words[0]);
    }
    if (leader < 0 || waitpid(leader, &status, 0) != leader)
        fail("job");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int count, char **words)
{
    if (count == 4 && strcmp(words[1], "pages") == 0)
        return pages(words[2], strtoul(words[3], NULL, 10));
    if (count == 3 && strcmp(words[1], "frames") == 0)
        return frames(strtoul(words[2], NULL, 10));
    if (count == 3 && strcmp(words[1], "block") == 0)
        return block(strtoul(words[2], NULL, 10));
    if (count == 3 && strcmp(words[1], "threads") == 0)
        return threads(atoi(words[2]));
    if (count >= 3 && strcmp(words[1], "hold") == 0)
        return hold(count - 2, words + 2);
    if (count >= 3 && strcmp(words[1], "job") == 0)
        return job(words + 2);
    fprintf(stderr, "usage: witness pages malloc|mmap COUNT | frames COUNT | block COUNT | threads COUNT | "
                    "hold COUNT... | job PROGRAM...\n");
    return 2;
}
