/* What threads of all nodes use against each other is used like any other memory, and mutexes that they fight for are like any
 * other mutexes: protection, system calls, fork, memory that is given back, and the results of all ways to lock.
 */
#include "../harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 24 };

struct cell {
    long count;
    long last[MAX_THREADS];
};

static char *memory;
static pthread_mutex_t locks[PAGES], recursive, checked, reused;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static long turn;
static pthread_barrier_t meet;
static __thread volatile sig_atomic_t refused;

static struct cell *cell(int page)
{
    return (struct cell *)(memory + (long)page * PAGE);
}

static void together(void)
{
    int result = pthread_barrier_wait(&meet);
    REQUIRE(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void on_refusal(int number, siginfo_t *information, void *context)
{
    (void)number;
    (void)context;
    refused++;
    mprotect((void *)((uintptr_t)information->si_addr / PAGE * PAGE), PAGE, PROT_READ | PROT_WRITE);
}

/* All threads add to all pages, each under its mutex. */
static void fight(long me, long rounds)
{
    for (long round = 0; round < rounds; round++)
        for (int page = 0; page < PAGES; page++) {
            EXPECT(0, pthread_mutex_lock(&locks[page]));
            cell(page)->count++;
            cell(page)->last[me] = round;
            EXPECT(0, pthread_mutex_unlock(&locks[page]));
        }
}

static void check_counts(long expected)
{
    for (int page = 0; page < PAGES; page++) {
        EXPECT(0, pthread_mutex_lock(&locks[page]));
        EXPECT(expected, cell(page)->count);
        EXPECT(0, pthread_mutex_unlock(&locks[page]));
    }
}

static void use_by_turns(long me)
{
    for (long round = 0; round < iterations; round++) {
        EXPECT(0, pthread_mutex_lock(&turn_lock));
        while (turn % threads != me)
            EXPECT(0, pthread_cond_wait(&turned, &turn_lock));
        turn++;
        EXPECT(0, pthread_cond_broadcast(&turned));
        EXPECT(0, pthread_mutex_unlock(&turn_lock));
    }
}

/* Thread 0 holds the mutexes while the others try them. */
static void lock_in_all_ways(long me)
{
    struct timespec past = {.tv_sec = 1};
    for (int round = 0; round < 12; round++) {
        for (int each = 0; each < 3; each++) {
            EXPECT(0, pthread_mutex_lock(&recursive));
            EXPECT(0, pthread_mutex_unlock(&recursive));
            EXPECT(0, pthread_mutex_lock(&checked));
            EXPECT(0, pthread_mutex_unlock(&checked));
        }
        together();
        if (me == 0) {
            EXPECT(0, pthread_mutex_lock(&recursive));
            EXPECT(0, pthread_mutex_lock(&recursive));
            EXPECT(0, pthread_mutex_trylock(&recursive));
            EXPECT(0, pthread_mutex_lock(&checked));
            EXPECT(EDEADLK, pthread_mutex_lock(&checked));
            EXPECT(EBUSY, pthread_mutex_trylock(&checked));
        }
        together();
        if (me != 0) {
            EXPECT(EBUSY, pthread_mutex_trylock(&recursive));
            EXPECT(EBUSY, pthread_mutex_trylock(&checked));
            EXPECT(ETIMEDOUT, pthread_mutex_timedlock(&recursive, &past));
            EXPECT(EPERM, pthread_mutex_unlock(&checked));
            EXPECT(EPERM, pthread_mutex_unlock(&recursive));
        }
        together();
        if (me == 0) {
            for (int each = 0; each < 3; each++)
                EXPECT(0, pthread_mutex_unlock(&recursive));
            EXPECT(EPERM, pthread_mutex_unlock(&recursive));
            EXPECT(0, pthread_mutex_unlock(&checked));
        }
        together();
    }
}

/* A mutex is destroyed, and made again as one of another kind. */
static void make_again(long me)
{
    for (int round = 0; round < 6; round++) {
        if (me == round % threads) {
            pthread_mutexattr_t kind;
            EXPECT(0, pthread_mutexattr_init(&kind));
            EXPECT(0, pthread_mutexattr_settype(&kind, round % 2 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_ERRORCHECK));
            EXPECT(0, pthread_mutex_init(&reused, &kind));
        }
        together();
        for (int each = 0; each < 5; each++) {
            EXPECT(0, pthread_mutex_lock(&reused));
            EXPECT(round % 2 ? 0 : EDEADLK, pthread_mutex_lock(&reused));
            EXPECT(0, pthread_mutex_unlock(&reused));
            EXPECT(round % 2 ? 0 : EPERM, pthread_mutex_unlock(&reused));
        }
        together();
        if (me == (round + 1) % threads)
            EXPECT(0, pthread_mutex_destroy(&reused));
        together();
    }
}

/* Each thread writes pages of its own by turns into a pipe and reads them back into the next one's. */
static void make_system_calls(long me)
{
    int ends[2];
    EXPECT(0, pipe(ends));
    for (int page = (int)me; page < PAGES; page += threads) {
        EXPECT(sizeof(struct cell), write(ends[1], cell(page), sizeof(struct cell)));
        memset(cell(page), 0, sizeof(struct cell));
        EXPECT(sizeof(struct cell), read(ends[0], cell(page), sizeof(struct cell)));
    }
    EXPECT(0, close(ends[0]));
    EXPECT(0, close(ends[1]));
}

static void protect(long me)
{
    for (int page = (int)me; page < PAGES; page += threads) {
        EXPECT(0, mprotect(cell(page), PAGE, PROT_READ));
        long before = cell(page)->count;
        refused = 0;
        *(volatile long *)&cell(page)->count = before + 1;
        EXPECT(1, refused);
        *(volatile long *)&cell(page)->count = before;
        EXPECT(1, refused);
    }
}

static void have_a_child(long expected)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        for (int page = 0; page < PAGES; page++) {
            if (cell(page)->count != expected)
                _exit(1);
            cell(page)->count = -1;
        }
        _exit(7);
    }
    int status;
    EXPECT(child, waitpid(child, &status, 0));
    REQUIRE(WIFEXITED(status));
    EXPECT(7, WEXITSTATUS(status));
}

static void give_back(void)
{
    EXPECT(0, madvise(memory, PAGES / 2 * PAGE, MADV_DONTNEED));
    EXPECT(0, munmap(memory + PAGES / 2 * PAGE, PAGES / 2 * PAGE));
    char *again = mmap(memory + PAGES / 2 * PAGE, PAGES / 2 * PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    REQUIRE(again == memory + PAGES / 2 * PAGE);
}

static void *run(void *argument)
{
    long me = (long)argument, rounds = iterations;
    fight(me, rounds);
    together();
    check_counts(rounds * threads);
    together();
    make_system_calls(me);
    together();
    check_counts(rounds * threads);
    together();
    protect(me);
    together();
    fight(me, rounds);
    together();
    check_counts(2 * rounds * threads);
    together();
    if (me == threads - 1)
        have_a_child(2 * rounds * threads);
    together();
    check_counts(2 * rounds * threads);
    together();
    if (me == 0)
        give_back();
    together();
    check_counts(0);
    for (int page = 0; page < PAGES; page++)
        for (size_t word = 0; word < PAGE / sizeof(long); word++)
            EXPECT(0, ((long *)cell(page))[word]);
    together();
    fight(me, rounds);
    together();
    check_counts(rounds * threads);
    use_by_turns(me);
    lock_in_all_ways(me);
    make_again(me);
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 20);
    REQUIRE(sizeof(struct cell) <= PAGE);
    struct sigaction action = {.sa_sigaction = on_refusal, .sa_flags = SA_SIGINFO};
    EXPECT(0, sigaction(SIGSEGV, &action, NULL));
    memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    for (int page = 0; page < PAGES; page++)
        EXPECT(0, pthread_mutex_init(&locks[page], NULL));
    pthread_mutexattr_t kind;
    EXPECT(0, pthread_mutexattr_init(&kind));
    EXPECT(0, pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE));
    EXPECT(0, pthread_mutex_init(&recursive, &kind));
    EXPECT(0, pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK));
    EXPECT(0, pthread_mutex_init(&checked, &kind));
    EXPECT(0, pthread_barrier_init(&meet, NULL, (unsigned)threads));
    static pthread_t team[MAX_THREADS];
    for (long i = 0; i < threads; i++)
        EXPECT(0, pthread_create(&team[i], NULL, run, (void *)i));
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_join(team[i], NULL));
    EXPECT(threads * iterations, turn);
    return pass();
}
