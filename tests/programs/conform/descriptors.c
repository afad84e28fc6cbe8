/* Threads that open files of their own side by side: every call means the caller's own file. */
#include "../harness.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 20 };
static char folder[] = "/tmp/descriptors.XXXXXX";
static pthread_barrier_t opened;

static void path_of(char *path, size_t size, int self, int file)
{
    snprintf(path, size, "%s/%d.%d", folder, self, file);
}

/* Many files at once, all open in all threads, read back through the same numbers. */
static void files(int self)
{
    int fds[FILES];
    char path[100], text[100], got[100];
    for (int i = 0; i < FILES; i++) {
        path_of(path, sizeof path, self, i);
        fds[i] = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
        REQUIRE(fds[i] > 2 && fds[i] < FD_SETSIZE);
        int length = snprintf(text, sizeof text, "thread %d file %d", self, i);
        EXPECT(length, write(fds[i], text, length));
    }
    pthread_barrier_wait(&opened);
    for (int i = 0; i < FILES; i++) {
        int length = snprintf(text, sizeof text, "thread %d file %d", self, i);
        EXPECT(length, lseek(fds[i], 0, SEEK_END));
        EXPECT(length, pread(fds[i], got, sizeof got, 0));
        EXPECT(0, memcmp(got, text, length));
    }
    pthread_barrier_wait(&opened);
    for (int i = 0; i < FILES; i++) {
        EXPECT(0, close(fds[i]));
        path_of(path, sizeof path, self, i);
        EXPECT(0, unlink(path));
    }
}

/* Numbers at which no thread has anything open. */
static void closed(int self)
{
    for (int fd = 800 + self; fd < 900; fd += 7) {
        char byte = 0;
        struct stat status;
        errno = 0;
        EXPECT(-1, write(fd, &byte, 1));
        EXPECT(EBADF, errno);
        errno = 0;
        EXPECT(-1, fstat(fd, &status));
        EXPECT(EBADF, errno);
        errno = 0;
        EXPECT(-1, close(fd));
        EXPECT(EBADF, errno);
        REQUIRE(fdopen(fd, "r") == NULL);
        EXPECT(-1, dup(fd));
        EXPECT(-1, fcntl(fd, F_GETFD));
    }
}

/* Copies share their offset, and closing one leaves the others. */
static void copies(int self)
{
    char path[100], byte;
    path_of(path, sizeof path, self, 0);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    EXPECT(6, write(fd, "abcdef", 6));
    EXPECT(0, lseek(fd, 0, SEEK_SET));
    int copy = dup(fd);
    REQUIRE(copy > 2 && copy != fd);
    EXPECT(1, read(fd, &byte, 1));
    EXPECT(1, read(copy, &byte, 1));
    EXPECT('b', byte);
    EXPECT(0, close(fd));
    EXPECT(1, read(copy, &byte, 1));
    EXPECT('c', byte);
    /* A number that the program chooses: far from what any thread has open. */
    int chosen = 900 + self;
    EXPECT(chosen, dup2(copy, chosen));
    EXPECT(chosen, dup2(chosen, chosen));
    EXPECT(0, close(copy));
    EXPECT(1, read(chosen, &byte, 1));
    EXPECT('d', byte);
    EXPECT(FD_CLOEXEC, fcntl(chosen, F_SETFD, FD_CLOEXEC) | fcntl(chosen, F_GETFD));
    int higher = fcntl(chosen, F_DUPFD_CLOEXEC, 50);
    REQUIRE(higher >= 50);
    EXPECT(0, close(chosen));
    errno = 0;
    EXPECT(-1, read(chosen, &byte, 1));
    EXPECT(EBADF, errno);
    EXPECT(-1, close(chosen));
    EXPECT(1, read(higher, &byte, 1));
    EXPECT('e', byte);
    EXPECT(0, close(higher));
    EXPECT(0, unlink(path));
}

static void channels(int self)
{
    int ends[2], pair[2];
    char byte = (char)self;
    EXPECT(0, pipe(ends));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    struct timeval none = {0, 0};
    EXPECT(0, select(ends[0] + 1, &set, NULL, NULL, &none));
    EXPECT(1, write(ends[1], &byte, 1));
    FD_SET(ends[0], &set);
    EXPECT(1, select(ends[0] + 1, &set, NULL, NULL, NULL));
    struct pollfd polled[2] = {{ends[0], POLLIN, 0}, {-1, POLLIN, 0}};
    EXPECT(1, poll(polled, 2, -1));
    EXPECT(POLLIN, polled[0].revents);
    EXPECT(0, close(ends[1]));
    EXPECT(1, read(ends[0], &byte, 1));
    EXPECT(self, byte);
    EXPECT(0, read(ends[0], &byte, 1));
    EXPECT(0, close(ends[0]));
    EXPECT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    EXPECT(1, send(pair[0], &byte, 1, 0));
    EXPECT(0, shutdown(pair[0], SHUT_WR));
    EXPECT(1, recv(pair[1], &byte, 1, 0));
    EXPECT(0, recv(pair[1], &byte, 1, 0));
    EXPECT(0, close(pair[0]) | close(pair[1]));
    eventfd_t count = 0;
    int event = eventfd(3, 0);
    EXPECT(0, eventfd_write(event, 4));
    EXPECT(0, eventfd_read(event, &count));
    EXPECT(7, count);
    EXPECT(0, close(event));
}

static void streams(int self)
{
    char path[100], line[100], text[100];
    path_of(path, sizeof path, self, 0);
    FILE *out = fopen(path, "w+");
    REQUIRE(out);
    for (int i = 0; i < 1000; i++)
        fprintf(out, "%d %d\n", self, i);
    pthread_barrier_wait(&opened);
    rewind(out);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "%d %d\n", self, i);
        REQUIRE(fgets(line, sizeof line, out));
        EXPECT(0, strcmp(line, text));
    }
    EXPECT(EOF, getc(out));
    REQUIRE(feof(out) && !ferror(out));
    clearerr(out);
    EXPECT(0, fseek(out, 2, SEEK_SET));
    EXPECT('x', ungetc('x', out));
    EXPECT('x', fgetc(out));
    EXPECT(2, ftell(out));
    REQUIRE(freopen("/dev/null", "w", out) == out);
    EXPECT('y', putc('y', out));
    EXPECT(0, fclose(out));
    EXPECT(0, unlink(path));
    FILE *child = popen("echo child", "r");
    REQUIRE(child);
    REQUIRE(fgets(line, sizeof line, child));
    EXPECT(0, strcmp(line, "child\n"));
    EXPECT(0, pclose(child));
    FILE *file = tmpfile();
    REQUIRE(file);
    EXPECT(0, fputs("temporary", file) < 0);
    EXPECT(0, fseek(file, 0, SEEK_SET));
    EXPECT(1, fscanf(file, "%99s", text));
    EXPECT(0, strcmp(text, "temporary"));
    int copy = dup(fileno(file));
    EXPECT(0, fclose(file));
    file = fdopen(copy, "r");
    REQUIRE(file);
    EXPECT(0, fclose(file));
    char memory[20] = "in memory";
    file = fmemopen(memory, sizeof memory, "r");
    REQUIRE(file);
    EXPECT(1, fscanf(file, "%99s", text));
    EXPECT(0, strcmp(text, "in"));
    EXPECT(0, fclose(file));
    DIR *directory = opendir(folder);
    REQUIRE(directory);
    int fd = dirfd(directory);
    struct stat status;
    EXPECT(0, fstat(fd, &status));
    REQUIRE(S_ISDIR(status.st_mode));
    REQUIRE(readdir(directory));
    rewinddir(directory);
    EXPECT(0, closedir(directory));
}

static long work(int self)
{
    files(self);
    pthread_barrier_wait(&opened);
    closed(self);
    pthread_barrier_wait(&opened);
    copies(self);
    channels(self);
    streams(self);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    REQUIRE(mkdtemp(folder));
    EXPECT(0, pthread_barrier_init(&opened, NULL, threads));
    run_threads(threads, work);
    EXPECT(0, rmdir(folder));
    int fd = open("/dev/null", O_RDONLY), ends[2];
    EXPECT(0, pipe(ends));
    EXPECT(fd + 2, ends[1]);
    EXPECT(0, close(fd));
    EXPECT(fd, dup(ends[0]));
    struct rlimit limit;
    EXPECT(0, getrlimit(RLIMIT_NOFILE, &limit));
    printf("open files: %ld\n", (long)limit.rlim_cur);
    return pass();
}
