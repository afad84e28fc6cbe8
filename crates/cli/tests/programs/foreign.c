/* Uses, in a thread on another node, what main has opened. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

static int fd;
static FILE *stream, *memory;
static DIR *directory;

/* A call that must fail, with EBADF. */
#define FAILS(expected, call)                                        \
    do {                                                             \
        errno = 0;                                                   \
        long result = (long)(call);                                  \
        if (result != (long)(expected) || errno != EBADF)            \
            printf("%s: %ld, errno %d\n", #call, result, errno);     \
    } while (0)

static void *descriptors(void *unused)
{
    char byte = 0;
    struct stat status;
    struct pollfd polled = {fd, POLLIN, 0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    /* Neither another file at the same number, nor one that is opened now. */
    int own = open(__FILE__, O_RDONLY);
    FAILS(-1, read(fd, &byte, 1));
    FAILS(-1, pread(fd, &byte, 1, 0));
    FAILS(-1, lseek(fd, 0, SEEK_CUR));
    FAILS(-1, fstat(fd, &status));
    FAILS(-1, dup(fd));
    FAILS(-1, dup2(fd, own));
    FAILS(-1, dup2(own, fd));
    FAILS(-1, fcntl(fd, F_GETFD));
    FAILS(-1, openat(fd, "file", O_RDONLY));
    FAILS(-1, select(fd + 1, &set, NULL, NULL, NULL));
    FAILS(NULL, fdopen(fd, "r"));
    FAILS(-1, close(fd));
    if (poll(&polled, 1, -1) != 1 || polled.revents != POLLNVAL)
        printf("poll: %d\n", polled.revents);
    if (own == fd || read(own, &byte, 1) != 1 || byte != '/' || close(own) != 0)
        printf("the thread's own file is not right\n");
    return unused;
}

static void *streams(void *unused)
{
    char line[100] = "";
    /* Natively this would have the memory of a stream that was closed before; here it must not be main's. */
    FILE *own = fopen(__FILE__, "r");
    FAILS(NULL, freopen(__FILE__, "r", stream));
    FAILS(EOF, fscanf(stream, "%99s", line));
    FAILS(WEOF, getwc(stream));
    FAILS(-1, fwprintf(stream, L"%d", 1));
    FAILS(EOF, getc(memory));
    FAILS(-1, fprintf(memory, "%d", 1));
    FAILS(EOF, fclose(memory));
    FAILS(NULL, readdir(directory));
    FAILS(-1, dirfd(directory));
    FAILS(-1, closedir(directory));
    if (own == stream || fgets(line, sizeof line, own) == NULL || strncmp(line, "/* Uses", 7) != 0 || fclose(own) != 0)
        printf("the thread's own stream is not right: %s\n", line);
    return unused;
}

static void run(void *(*function)(void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, function, NULL);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    char line[100];
    (void)argc;
    fd = open(argv[0], O_RDONLY);
    stream = fopen(__FILE__, "r");
    directory = opendir(".");
    memory = fmemopen(line, sizeof line, "w+");
    run(strcmp(argv[1], "streams") == 0 ? streams : descriptors);
    /* All of main's are as they were. */
    printf("%zd ", read(fd, line, 4));
    printf("%.3s ", line + 1);
    printf("%.7s ", fgets(line, sizeof line, stream));
    printf("%d\n", readdir(directory) != NULL);
    printf("%d %d %d\n", close(fd), fclose(stream), closedir(directory));
    return 0;
}
