/* System calls in threads whose buffers are heap blocks that another thread wrote or will read. */
#include "../harness.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 5 * PAGE + 123 };

/* All of it in the heap, filled by main, which verifies the results after the threads have ended. */
static struct area {
    char path[200];
    char out[SIZE];
    char in[SIZE];
    char in_parts[2][SIZE / 2];
    char directory[4096];
    char link[200];
    char received[3000];
    struct stat by_fd, by_path;
    struct iovec vector[2];
    struct pollfd poll;
    int pipe[2], sockets[2];
    struct timespec resolution;
    struct utsname name;
} *areas[MAX_THREADS];

static long files(struct area *a)
{
    int fd = mkstemp(a->path);
    REQUIRE(fd >= 0);
    EXPECT(SIZE, write(fd, a->out, SIZE));
    EXPECT(0, fstat(fd, &a->by_fd));
    EXPECT(0, stat(a->path, &a->by_path));
    EXPECT(0, lseek(fd, 0, SEEK_SET));
    EXPECT(SIZE, read(fd, a->in, SIZE));
    a->vector[0] = (struct iovec){a->in_parts[0], SIZE / 2};
    a->vector[1] = (struct iovec){a->in_parts[1], SIZE / 2};
    EXPECT(SIZE / 2 * 2, preadv(fd, a->vector, 2, 1));
    EXPECT(SIZE / 2 * 2, pwritev(fd, a->vector, 2, SIZE));
    EXPECT(1, lseek(fd, 1, SEEK_SET));
    EXPECT(SIZE / 2 * 2, readv(fd, a->vector, 2));
    EXPECT(100, pwrite(fd, a->out, 100, 2 * SIZE));
    EXPECT(100, pread(fd, a->received, 100, 2 * SIZE));
    EXPECT(0, memcmp(a->received, a->out, 100));
    EXPECT(0, close(fd));
    EXPECT(0, unlink(a->path));
    REQUIRE(getcwd(a->directory, sizeof a->directory) == a->directory);
    REQUIRE(readlink("/proc/self/exe", a->link, sizeof a->link) > 0);
    EXPECT(0, clock_getres(CLOCK_MONOTONIC, &a->resolution));
    EXPECT(0, uname(&a->name));
    return 0;
}

static long channels(struct area *a)
{
    EXPECT(0, pipe(a->pipe));
    EXPECT(2000, write(a->pipe[1], a->out, 2000));
    a->poll = (struct pollfd){a->pipe[0], POLLIN, 0};
    EXPECT(1, poll(&a->poll, 1, -1));
    EXPECT(POLLIN, a->poll.revents);
    EXPECT(2000, read(a->pipe[0], a->received, 3000));
    EXPECT(0, memcmp(a->received, a->out, 2000));
    EXPECT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, a->sockets));
    EXPECT(3000, send(a->sockets[0], a->out, 3000, 0));
    EXPECT(3000, recv(a->sockets[1], a->received, 3000, MSG_WAITALL));
    for (int i = 0; i < 2; i++) {
        EXPECT(0, close(a->pipe[i]));
        EXPECT(0, close(a->sockets[i]));
    }
    return 0;
}

static long work(int self)
{
    return files(areas[self]) + channels(areas[self]);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    char here[4096];
    REQUIRE(getcwd(here, sizeof here));
    for (int i = 0; i < threads; i++) {
        struct area *a = areas[i] = malloc(sizeof *a);
        memset(a, 0x55, sizeof *a);
        snprintf(a->path, sizeof a->path, "/tmp/io_syscalls.%d.XXXXXX", i);
        uint32_t state = (uint32_t)i;
        for (int k = 0; k < SIZE; k++)
            a->out[k] = (char)next_random(&state);
    }
    run_threads(threads, work);
    for (int i = 0; i < threads; i++) {
        struct area *a = areas[i];
        EXPECT(0, memcmp(a->in, a->out, SIZE));
        EXPECT(0, memcmp(a->in_parts[0], a->out + 1, SIZE / 2));
        EXPECT(0, memcmp(a->in_parts[1], a->out + 1 + SIZE / 2, SIZE / 2));
        EXPECT(0, memcmp(a->received, a->out, 3000));
        EXPECT(SIZE, a->by_fd.st_size);
        EXPECT(SIZE, a->by_path.st_size);
        EXPECT(a->by_fd.st_ino, a->by_path.st_ino);
        EXPECT(0, strcmp(a->directory, here));
        REQUIRE(strcmp(a->name.sysname, "Linux") == 0);
        REQUIRE(a->resolution.tv_sec == 0);
    }
    return pass();
}
