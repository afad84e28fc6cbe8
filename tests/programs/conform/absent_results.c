/* Calls that fill in what the system knows: time, signals, processes, identity. */
#include "../absent.h"
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ONE memory
#define TWO (memory + PAGE)
#define THREE (memory + 2 * PAGE)
#define AS(type, place) ((type *)(place))

static void clocks(char *memory)
{
    EXPECT(0, clock_gettime(CLOCK_REALTIME, AS(struct timespec, ONE)));
    EXPECT(0, clock_gettime(CLOCK_THREAD_CPUTIME_ID, AS(struct timespec, TWO)));
    EXPECT(0, clock_getres(CLOCK_MONOTONIC, AS(struct timespec, THREE)));
    REQUIRE(AS(struct timespec, ONE)->tv_sec > 0 && AS(struct timespec, THREE)->tv_nsec > 0);
}

static void other_clock(char *memory)
{
    EXPECT(0, clock_gettime(CLOCK_PROCESS_CPUTIME_ID, AS(struct timespec, ONE)));
    EXPECT(0, gettimeofday(AS(struct timeval, TWO), NULL));
    REQUIRE(time(AS(time_t, THREE)) == *AS(time_t, THREE));
}

static void adjusts(char *memory)
{
    REQUIRE(adjtimex(AS(struct timex, ONE)) >= 0);
}

static void usage(char *memory)
{
    EXPECT(0, getrusage(RUSAGE_SELF, AS(struct rusage, ONE)));
    REQUIRE(times(AS(struct tms, TWO)) != -1);
    EXPECT(0, getrlimit(RLIMIT_CPU, AS(struct rlimit, THREE)));
}

static void limits(char *memory)
{
    EXPECT(0, prlimit(0, RLIMIT_CORE, NULL, AS(struct rlimit, ONE)));
    EXPECT(0, prlimit(0, RLIMIT_NOFILE, NULL, AS(struct rlimit, TWO)));
}

static void machine(char *memory)
{
    EXPECT(0, uname(AS(struct utsname, ONE)));
    EXPECT(0, sysinfo(AS(struct sysinfo, TWO)));
    EXPECT(0, gethostname(THREE, PAGE));
    REQUIRE(AS(struct sysinfo, TWO)->totalram > 0 && THREE[0]);
}

static void domain(char *memory)
{
    EXPECT(0, getdomainname(ONE, PAGE));
}

static void chance(char *memory)
{
    EXPECT(2 * PAGE, getrandom(ONE, 2 * PAGE, 0));
    EXPECT(0, getentropy(THREE, 256));
}

static void groups(char *memory)
{
    REQUIRE(getgroups(PAGE / sizeof(gid_t), AS(gid_t, ONE)) >= 0);
    EXPECT(0, getresuid(AS(uid_t, TWO), AS(uid_t, TWO) + 1, AS(uid_t, THREE)));
    EXPECT(getuid(), *AS(uid_t, TWO));
}

static void other_groups(char *memory)
{
    EXPECT(0, getresgid(AS(gid_t, ONE), AS(gid_t, TWO), AS(gid_t, THREE)));
    EXPECT(getgid(), *AS(gid_t, ONE));
}

static void scheduling(char *memory)
{
    EXPECT(0, sched_getaffinity(0, PAGE, AS(cpu_set_t, ONE)));
    EXPECT(0, sched_getparam(0, AS(struct sched_param, TWO)));
    EXPECT(0, sched_rr_get_interval(0, AS(struct timespec, THREE)));
}

static void thread_scheduling(char *memory)
{
    EXPECT(0, pthread_getaffinity_np(pthread_self(), PAGE, AS(cpu_set_t, ONE)));
    EXPECT(0, pthread_getschedparam(pthread_self(), AS(int, TWO), AS(struct sched_param, THREE)));
}

static void name_before(char *memory)
{
    strcpy(ONE, "named");
    strcpy(TWO, "again");
}

static void names(char *memory)
{
    EXPECT(0, pthread_setname_np(pthread_self(), ONE));
    EXPECT(0, pthread_getname_np(pthread_self(), THREE, 16));
    EXPECT(0, strcmp(THREE, "named"));
    EXPECT(0, prctl(PR_SET_NAME, TWO));
    EXPECT(0, prctl(PR_GET_NAME, TWO + 100));
    EXPECT(0, strcmp(TWO + 100, "again"));
}

static void signal_before(char *memory)
{
    sigemptyset(AS(sigset_t, ONE));
    sigaddset(AS(sigset_t, ONE), SIGUSR1);
    AS(struct timespec, THREE)->tv_sec = 10;
}

static void signals(char *memory)
{
    EXPECT(0, pthread_sigmask(SIG_BLOCK, AS(sigset_t, ONE), NULL));
    EXPECT(0, pthread_kill(pthread_self(), SIGUSR1));
    EXPECT(0, sigpending(AS(sigset_t, TWO)));
    EXPECT(1, sigismember(AS(sigset_t, TWO), SIGUSR1));
}

static void timed_wait(char *memory)
{
    EXPECT(SIGUSR1, sigtimedwait(AS(sigset_t, ONE), AS(siginfo_t, TWO), AS(struct timespec, THREE)));
    EXPECT(SIGUSR1, AS(siginfo_t, TWO)->si_signo);
    EXPECT(0, pthread_kill(pthread_self(), SIGUSR1));
}

static void info_wait(char *memory)
{
    EXPECT(SIGUSR1, sigwaitinfo(AS(sigset_t, ONE), AS(siginfo_t, TWO)));
    EXPECT(SIGUSR1, AS(siginfo_t, TWO)->si_signo);
    EXPECT(0, pthread_kill(pthread_self(), SIGUSR1));
}

static void plain_wait(char *memory)
{
    EXPECT(0, sigwait(AS(sigset_t, ONE), AS(int, TWO)));
    EXPECT(SIGUSR1, *AS(int, TWO));
}

static void timer_before(char *memory)
{
    AS(struct sigevent, ONE)->sigev_notify = SIGEV_NONE;
    AS(struct itimerspec, THREE)->it_value.tv_sec = 1000;
}

static void timers(char *memory)
{
    EXPECT(0, timer_create(CLOCK_MONOTONIC, AS(struct sigevent, ONE), AS(timer_t, TWO)));
    timer_t timer = *AS(timer_t, TWO);
    EXPECT(0, timer_settime(timer, 0, AS(struct itimerspec, THREE), AS(struct itimerspec, TWO + 100)));
    EXPECT(0, timer_gettime(timer, AS(struct itimerspec, ONE)));
    REQUIRE(AS(struct itimerspec, ONE)->it_value.tv_sec > 900);
    EXPECT(0, timer_delete(timer));
}

static void timer_files(char *memory)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    EXPECT(0, timerfd_settime(fd, 0, AS(struct itimerspec, THREE), AS(struct itimerspec, TWO)));
    EXPECT(0, timerfd_gettime(fd, AS(struct itimerspec, ONE)));
    REQUIRE(AS(struct itimerspec, ONE)->it_value.tv_sec > 900);
    EXPECT(0, close(fd));
    EXPECT(0, getitimer(ITIMER_VIRTUAL, AS(struct itimerval, TWO)));
}

static void sleep_before(char *memory)
{
    AS(struct timespec, ONE)->tv_nsec = AS(struct timespec, TWO)->tv_nsec = 1000;
}

static void sleeps(char *memory)
{
    EXPECT(0, nanosleep(AS(struct timespec, ONE), AS(struct timespec, THREE)));
    EXPECT(0, clock_nanosleep(CLOCK_MONOTONIC, 0, AS(struct timespec, TWO), AS(struct timespec, THREE)));
}

static void child(char *memory)
{
    FILE *started = popen("exit 5", "r");
    REQUIRE(wait4(-1, AS(int, ONE), 0, AS(struct rusage, TWO)) > 0);
    EXPECT(5, WEXITSTATUS(*AS(int, ONE)));
    EXPECT(-1, pclose(started));
}

static void residence(char *memory)
{
    EXPECT(0, mincore(memory, 4 * PAGE, (unsigned char *)THREE));
}

static void requests(char *memory)
{
    int ends[2];
    EXPECT(0, pipe(ends));
    EXPECT(3, write(ends[1], "abc", 3));
    EXPECT(0, ioctl(ends[0], FIONREAD, ONE));
    EXPECT(3, *AS(int, ONE));
    EXPECT(0, close(ends[0]) | close(ends[1]));
}

static void lock_before(char *memory)
{
    AS(struct flock, ONE)->l_type = F_WRLCK;
    strcpy(TWO, "/tmp/absent.lock.XXXXXX");
}

static void locks(char *memory)
{
    int fd = mkstemp(TWO);
    EXPECT(0, fcntl(fd, F_GETLK, ONE));
    EXPECT(F_UNLCK, AS(struct flock, ONE)->l_type);
    AS(struct flock, ONE)->l_type = F_WRLCK;
    EXPECT(0, fcntl(fd, F_OFD_SETLK, ONE));
    EXPECT(0, close(fd));
    EXPECT(0, unlink(TWO));
}

static const struct job all[] = {
    {"clock_gettime", NULL, clocks},
    {"clock_gettime of the processor", NULL, other_clock},
    {"adjtimex", NULL, adjusts},
    {"getrusage", NULL, usage},
    {"prlimit", NULL, limits},
    {"uname", NULL, machine},
    {"getdomainname", NULL, domain},
    {"getrandom", NULL, chance},
    {"getgroups", NULL, groups},
    {"getresgid", NULL, other_groups},
    {"sched_getaffinity", NULL, scheduling},
    {"pthread_getaffinity_np", NULL, thread_scheduling},
    {"pthread_setname_np", name_before, names},
    {"sigpending", signal_before, signals},
    {"sigtimedwait", signal_before, timed_wait},
    {"sigwaitinfo", signal_before, info_wait},
    {"sigwait", signal_before, plain_wait},
    {"timer_create", timer_before, timers},
    {"timerfd_settime", timer_before, timer_files},
    {"nanosleep", sleep_before, sleeps},
    {"wait4", NULL, child},
    {"mincore", NULL, residence},
    {"ioctl", NULL, requests},
    {"fcntl", lock_before, locks},
};

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 1);
    return run_jobs(all, sizeof all / sizeof *all);
}
