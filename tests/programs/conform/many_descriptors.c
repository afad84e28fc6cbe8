/* The program's limit on open files holds for all threads together: one thread can have nearly as many as the program may, no number is
 * beyond the limit, and threads use each other's whatever their numbers. */
#include "../harness.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, LIMIT = 3000, EACH = 300, HELD = 600 };

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned char used[LIMIT];
static int ends[THREADS][2];

static void meet(void)
{
    pthread_barrier_wait(&barrier);
}

static void note(int number)
{
    REQUIRE(number >= 0 && number < LIMIT);
    pthread_mutex_lock(&mutex);
    EXPECT(0, used[number]);
    used[number] = 1;
    pthread_mutex_unlock(&mutex);
}

/* Opens as many as are left, and closes them. */
static int left(void)
{
    static int opened[LIMIT];
    int count = 0;
    for (int number; (number = open("/dev/null", O_RDONLY)) >= 0; count++) {
        REQUIRE(number < LIMIT);
        opened[count] = number;
    }
    EXPECT(EMFILE, errno);
    for (int i = 0; i < count; i++)
        EXPECT(0, close(opened[i]));
    return count;
}

static long open_many(int self)
{
    for (int i = 0; i < EACH; i++)
        note(i % 3 == 0 ? open("/dev/null", O_RDONLY) : i % 3 == 1 ? dup(1) : fileno(fopen("/dev/null", "r")));
    EXPECT(0, pipe(ends[self]));
    meet();

    /* To the next thread by the numbers that this one has, which are high. */
    REQUIRE(ends[self][1] > EACH);
    int mine = self + 100, its = 0;
    EXPECT((long)sizeof mine, (long)write(ends[self][1], &mine, sizeof mine));
    EXPECT((long)sizeof its, (long)read(ends[(self + 1) % THREADS][0], &its, sizeof its));
    EXPECT((self + 1) % THREADS + 100, its);
    meet();

    /* Numbers of the program's choice, taken once. */
    int chosen = LIMIT - 10 - self, above = 2000 + 100 * self;
    EXPECT(chosen, dup2(ends[self][1], chosen));
    int copy = fcntl(ends[self][0], F_DUPFD, above);
    REQUIRE(copy >= above && copy < above + 100);
    EXPECT(-1, dup2(ends[self][1], LIMIT));
    EXPECT(EBADF, errno);
    EXPECT(-1, fcntl(ends[self][0], F_DUPFD, LIMIT));
    EXPECT(EINVAL, errno);
    EXPECT((long)sizeof mine, (long)write(chosen, &mine, sizeof mine));
    EXPECT((long)sizeof its, (long)read(copy, &its, sizeof its));
    EXPECT(mine, its);
    meet();

    /* A thread other than main has what is left of the program's, but for what is held for others, and a child has all. */
    if (self == 2) {
        int of_thread = left();
        REQUIRE(of_thread > LIMIT - THREADS * (EACH + 4) - HELD);
        pid_t child = fork();
        if (child == 0)
            _exit(left() < of_thread);
        int status;
        EXPECT((long)child, (long)waitpid(child, &status, 0));
        EXPECT(0, status);
    }
    meet();
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    struct rlimit limit;
    EXPECT(0, getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = LIMIT;
    EXPECT(0, setrlimit(RLIMIT_NOFILE, &limit));
    EXPECT(0, pthread_barrier_init(&barrier, NULL, THREADS));
    run_threads(THREADS, open_many);
    return pass();
}
