/* System calls by their numbers, on memory and descriptors of threads of all nodes. */
#include "../harness.h"
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 3 * PAGE + 77 };

/* Main and the threads use it by turns. */
static struct area {
    char path[64], directory[256], out[SIZE], in[SIZE];
    int file, pipe[2];
    pid_t process;
    struct pollfd poll;
    struct stat status;
    struct utsname name;
    struct timespec time;
    cpu_set_t processors;
    /* As the kernel has them: size, flags and so on; version and thread; effective, permitted and inheritable. */
    uint32_t scheduling[12], capabilities_of[2], capabilities[6], processor;
    char *mapped;
} *area;

/* Reads and writes what main has opened, with buffers that main has written. */
static long use_descriptors(void)
{
    EXPECT(SIZE, syscall(SYS_write, area->file, area->out, SIZE));
    EXPECT(0, syscall(SYS_fstat, area->file, &area->status));
    EXPECT(SIZE, area->status.st_size);
    EXPECT(5, syscall(SYS_lseek, area->file, 5, SEEK_SET));
    EXPECT(SIZE - 5, syscall(SYS_read, area->file, area->in, SIZE));
    EXPECT(0, memcmp(area->in, area->out + 5, SIZE - 5));
    EXPECT(100, syscall(SYS_pread64, area->file, area->in, 100, 7));
    EXPECT(4, syscall(SYS_write, area->pipe[1], "four", 4));
    EXPECT(0, syscall(SYS_close, area->pipe[1]));
    memset(area->in, 0, sizeof area->in);
    return 0;
}

/* Opens what main reads. */
static long open_one(void)
{
    long file = syscall(SYS_openat, AT_FDCWD, area->path, O_RDWR);
    REQUIRE(file > 2 && file != area->file);
    area->file = (int)file;
    EXPECT(11, syscall(SYS_lseek, file, 11, SEEK_SET));
    EXPECT(0, syscall(SYS_pipe2, area->pipe, O_CLOEXEC));
    EXPECT(3, syscall(SYS_write, area->pipe[1], "two", 3));
    return 0;
}

/* Of the calling thread, by its number. They stay as they are. */
static void ask_capabilities(pid_t thread)
{
    area->capabilities_of[0] = 0x20080522;
    area->capabilities_of[1] = (uint32_t)thread;
    EXPECT(0, syscall(SYS_capget, area->capabilities_of, area->capabilities));
    EXPECT(0, syscall(SYS_capset, area->capabilities_of, area->capabilities));
    EXPECT(thread, (pid_t)area->capabilities_of[1]);
}

/* Results in memory that main has had last. */
static long ask(void)
{
    EXPECT(area->process, syscall(SYS_getpid));
    EXPECT(gettid(), syscall(SYS_gettid));
    EXPECT(0, syscall(SYS_kill, area->process, 0));
    EXPECT(0, syscall(SYS_uname, &area->name));
    EXPECT(0, syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &area->time));
    EXPECT(64, syscall(SYS_getrandom, area->in, 64, 0));
    EXPECT(2, syscall(SYS_getcwd, area->directory, sizeof area->directory));
    REQUIRE(syscall(SYS_sched_getaffinity, 0, sizeof area->processors, &area->processors) >= 8);
    REQUIRE(CPU_COUNT(&area->processors) > 0);
    EXPECT(0, syscall(SYS_sched_getattr, 0, area->scheduling, sizeof area->scheduling, 0));
    EXPECT(sizeof area->scheduling, area->scheduling[0]);
    EXPECT(0, syscall(SYS_getcpu, &area->processor, NULL, NULL));
    REQUIRE(area->processor < CPU_SETSIZE);
    ask_capabilities(gettid());
    return 0;
}

static long map(void)
{
    area->mapped = (char *)syscall(SYS_mmap, NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(area->mapped != MAP_FAILED);
    memset(area->mapped, 7, 4 * PAGE);
    EXPECT(0, syscall(SYS_mprotect, area->mapped + PAGE, PAGE, PROT_READ));
    return 0;
}

static long unmap(void)
{
    EXPECT(9, area->mapped[0]);
    EXPECT(0, syscall(SYS_munmap, area->mapped, 4 * PAGE));
    return 0;
}

static long fail_each(void)
{
    EXPECT(-1, syscall(SYS_read, -1, area->in, 10));
    EXPECT(EBADF, errno);
    EXPECT(-1, syscall(SYS_pread64, area->file, (void *)8, 10, 0));
    EXPECT(EFAULT, errno);
    EXPECT(-1, syscall(SYS_openat, AT_FDCWD, "/nothing/of/this/name", O_RDONLY));
    EXPECT(ENOENT, errno);
    EXPECT(-1, syscall(SYS_getcwd, area->directory, 1));
    EXPECT(ERANGE, errno);
    EXPECT(-1, syscall(100000));
    EXPECT(ENOSYS, errno);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    area = malloc(sizeof *area);
    memset(area, 0x55, sizeof *area);
    snprintf(area->path, sizeof area->path, "/tmp/calls_by_number.XXXXXX");
    area->file = mkstemp(area->path);
    REQUIRE(area->file > 2);
    EXPECT(0, pipe(area->pipe));
    area->process = getpid();

    EXPECT(0, in_new_thread(use_descriptors));
    EXPECT(4, syscall(SYS_read, area->pipe[0], area->in, 10));
    EXPECT(0, memcmp(area->in, "four", 4));
    EXPECT(0, syscall(SYS_read, area->pipe[0], area->in, 10));

    EXPECT(0, in_new_thread(open_one));
    EXPECT(SIZE - 11, syscall(SYS_read, area->file, area->in, SIZE));
    EXPECT(0, memcmp(area->in, area->out + 11, SIZE - 11));
    area->poll = (struct pollfd){area->pipe[0], POLLIN, 0};
    EXPECT(1, syscall(SYS_poll, &area->poll, 1, -1));
    EXPECT(3, syscall(SYS_read, area->pipe[0], area->in, 10));
    EXPECT(0, syscall(SYS_unlink, area->path));

    EXPECT(0, syscall(SYS_chdir, "/"));
    EXPECT(0, in_new_thread(ask));
    EXPECT(0, strcmp(area->directory, "/"));
    EXPECT(0, strcmp(area->name.sysname, "Linux"));
    ask_capabilities(area->process);

    EXPECT(0, in_new_thread(map));
    EXPECT(7, area->mapped[4 * PAGE - 1]);
    EXPECT(1, syscall(SYS_write, area->pipe[1], "x", 1));
    EXPECT(-1, syscall(SYS_read, area->pipe[0], area->mapped + PAGE, 1));
    EXPECT(EFAULT, errno);
    area->mapped[0] = 9;
    EXPECT(0, in_new_thread(unmap));
    EXPECT(0, in_new_thread(fail_each));
    return pass();
}
