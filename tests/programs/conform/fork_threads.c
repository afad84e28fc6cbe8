/* Threads of all nodes fork: each child sees what all threads had written before, and changes only its own copy. */
#include "../harness.h"
#include <fcntl.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 3 * PAGE / sizeof(long) };

static long numbers[MAX_THREADS][WORDS];
static long *blocks[MAX_THREADS]; /* each allocated by its thread */
static char *text;                /* by the last thread */
static __thread long own;
static long *owns[MAX_THREADS];
static int program;
static sem_t posts; /* by all threads, once in each round */
static pthread_barrier_t barrier;

static long number_of(int thread, long round)
{
    return 1000 * round + thread + 1;
}

/* In a child: how many of the threads' numbers are not those of a round. */
static long wrong(long round, int self, const long *here)
{
    int value = 0;
    sem_getvalue(&posts, &value);
    long found = value != threads * (round + 1) || sem_trywait(&posts) != 0;
    found += *here != number_of(self, round) || own != number_of(self, round) || getppid() != program || getpid() == program;
    for (int thread = 0; thread < threads; thread++) {
        for (int i = 0; i < WORDS; i++)
            found += numbers[thread][i] != number_of(thread, round);
        long *longer = realloc(blocks[thread], 2 * WORDS * sizeof *longer);
        for (int i = 0; i < WORDS; i++)
            found += longer[i] != number_of(thread, round);
        free(longer);
    }
    return found;
}

/* A child that goes on, and tells what it has found by its status. */
static void count_wrong(int self, long round)
{
    long here = number_of(self, round);
    pid_t child = fork();
    if (child == 0) {
        long found = wrong(round, self, &here);
        memset(numbers, 0, sizeof numbers);
        own = 0;
        _exit(found > 100 ? 100 : (int)found);
    }
    REQUIRE(child > 0);
    int status = 0;
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
}

/* A child that runs another program, with an argument that another thread has made. */
static void run_echo(void)
{
    int ends[2], status = 0;
    char said[20] = "";
    EXPECT(0, pipe2(ends, O_CLOEXEC));
    pid_t child = fork();
    if (child == 0) {
        if (dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO)
            execl("/bin/echo", "echo", text, (char *)NULL);
        _exit(127);
    }
    REQUIRE(child > 0);
    EXPECT(0, close(ends[1]));
    EXPECT(6, read(ends[0], said, sizeof said));
    EXPECT(0, strcmp(said, "hello\n"));
    EXPECT(0, close(ends[0]));
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
}

static long work(int self)
{
    blocks[self] = malloc(WORDS * sizeof *blocks[self]);
    owns[self] = &own;
    if (self == threads - 1)
        text = strdup("hello");
    long lost = 0;
    for (long round = 0; round < iterations; round++) {
        own = number_of(self, round);
        for (int i = 0; i < WORDS; i++)
            numbers[self][i] = blocks[self][i] = number_of(self, round);
        EXPECT(0, sem_post(&posts));
        pthread_barrier_wait(&barrier);
        count_wrong(self, round);
        if (round == 0)
            run_echo();
        pthread_barrier_wait(&barrier);
        for (int thread = 0; thread < threads; thread++)
            lost += numbers[thread][WORDS - 1] != number_of(thread, round) || *owns[thread] != number_of(thread, round);
        pthread_barrier_wait(&barrier);
    }
    return lost;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 3);
    program = getpid();
    EXPECT(0, sem_init(&posts, 0, 0));
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    return verdict(run_threads(threads, work), "a child changed its parent's memory");
}
