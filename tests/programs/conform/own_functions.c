/* The program has functions of its own in front of the C library's, which call those by their other names, as wrappers do that watch
   signals or files. */
#include "../harness.h"
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

static __thread int deep, handled, calls;

static void begin(void)
{
    if (++deep > 1)
        fail("a wrapper was called by the function that it calls");
    calls++;
}

int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    static int (*next)(int, const struct sigaction *, struct sigaction *);
    if (!next)
        next = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "__sigaction");
    begin();
    int result = next(number, new, old);
    deep--;
    return result;
}

ssize_t __write(int, const void *, size_t);

ssize_t write(int file, const void *bytes, size_t length)
{
    begin();
    ssize_t result = __write(file, bytes, length);
    deep--;
    return result;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*next)(pthread_mutex_t *);
    if (!next)
        next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    begin();
    int result = next(mutex);
    deep--;
    return result;
}

static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static int ends[2];

static void on_signal(int number)
{
    handled += number == SIGUSR1;
}

static long work(int self)
{
    long violations = 0;
    for (int round = 0; round < iterations; round++) {
        violations += raise(SIGUSR1) != 0;
        violations += pthread_mutex_lock(&common) != 0;
        sum += self;
        violations += write(ends[1], "x", 1) != 1;
        violations += pthread_mutex_unlock(&common) != 0;
    }
    return violations + (handled != iterations) + (calls < 2 * iterations);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 20);
    struct sigaction action = {.sa_handler = on_signal};
    EXPECT(0, sigaction(SIGUSR1, &action, NULL));
    EXPECT(0, pipe(ends));
    long violations = run_threads(threads, work);
    char bytes[4096];
    EXPECT(threads * iterations, read(ends[0], bytes, sizeof bytes));
    EXPECT(iterations * threads * (threads - 1) / 2, sum);
    return verdict(violations, "a wrapper's call failed");
}
