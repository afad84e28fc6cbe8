/* The processor time of the process is that of all its threads, by whatever function it is asked for. */
#include "../harness.h"
#include <sys/resource.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, WORK = 30 /* milliseconds of each thread */, TICKS = 20 /* what rounding may lose */ };

static long milliseconds(struct timespec time)
{
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static long of(struct timeval time)
{
    return time.tv_sec * 1000 + time.tv_usec / 1000;
}

static long work(int self)
{
    (void)self;
    struct timespec used;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (milliseconds(used) < WORK);
    struct rusage own;
    EXPECT(0, getrusage(RUSAGE_THREAD, &own));
    return of(own.ru_utime) + of(own.ru_stime) < 10 * WORK + 1000 ? 0 : 1;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    clock_t begun = clock();
    EXPECT(0, run_threads(THREADS, work));
    REQUIRE((clock() - begun) / (CLOCKS_PER_SEC / 1000) >= THREADS * WORK - TICKS);
    struct timespec used;
    EXPECT(0, clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used));
    REQUIRE(milliseconds(used) >= THREADS * WORK);
    clockid_t own;
    EXPECT(0, clock_getcpuclockid(getpid(), &own));
    EXPECT(0, clock_gettime(own, &used));
    REQUIRE(milliseconds(used) >= THREADS * WORK);
    struct rusage usage;
    EXPECT(0, getrusage(RUSAGE_SELF, &usage));
    REQUIRE(of(usage.ru_utime) + of(usage.ru_stime) >= THREADS * WORK - TICKS);
    REQUIRE(usage.ru_maxrss > 0);
    struct tms ticks;
    REQUIRE(times(&ticks) != (clock_t)-1);
    REQUIRE((ticks.tms_utime + ticks.tms_stime) * 1000 / sysconf(_SC_CLK_TCK) >= THREADS * WORK - 2 * TICKS);
    EXPECT(-1, getrusage(12345, &usage));
    EXPECT(EINVAL, errno);
    return pass();
}
