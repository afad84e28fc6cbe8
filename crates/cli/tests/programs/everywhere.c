/* Descriptors that main and threads on other nodes use in turn. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 4 };
static char path[] = "/tmp/everywhere.XXXXXX";
static int fd, ends[2], theirs[THREADS], waiting;
static pthread_barrier_t all;

static int fails(long result)
{
    return result == -1 && errno == EBADF;
}

/* Runs a function in four threads, one after the other. */
static void in_turn(void *(*function)(void *))
{
    for (long i = 0; i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, function, (void *)i);
        pthread_join(thread, NULL);
    }
}

static void at_once(void *(*function)(void *))
{
    pthread_t thread[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, function, (void *)i);
    for (long i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void *next_word(void *self)
{
    char word[6] = "";
    long got = read(fd, word, 5);
    printf("thread %ld: read %ld %s, offset %ld\n", (long)self, got, word, (long)lseek(fd, 0, SEEK_CUR));
    return NULL;
}

/* Each thread its own part, all at once, through main's descriptor; and it stays open in spite of copies. */
static void *part(void *self)
{
    char text[20];
    int copy = dup(fd);
    int length = snprintf(text, sizeof text, "part %ld\n", (long)self);
    if (pwrite(copy, text, length, 100 + 7 * (long)self) != length || close(copy) != 0)
        abort();
    pthread_barrier_wait(&all);
    for (long i = 0; i < THREADS; i++) {
        char got[8] = "";
        snprintf(text, sizeof text, "part %ld\n", i);
        if (pread(fd, got, 7, 100 + 7 * i) != 7 || strcmp(got, text) != 0)
            abort();
    }
    return NULL;
}

static void *open_another(void *self)
{
    theirs[(long)self] = open(path, O_RDONLY);
    lseek(theirs[(long)self], 5 * (long)self, SEEK_SET);
    return NULL;
}

static void *use_theirs(void *self)
{
    char word[6] = "";
    int other = theirs[((long)self + 1) % THREADS];
    long got = pread(other, word, 5, 5 * (long)self);
    printf("thread %ld: %ld %s %d\n", (long)self, got, word, close(other));
    return NULL;
}

static void *which(void *self)
{
    struct stat status;
    printf("thread %ld: ", (long)self);
    printf(fstat(fd, &status) != 0 ? "nothing\n" : S_ISCHR(status.st_mode) ? "device\n" : "file\n");
    return NULL;
}

static void *say(void *self)
{
    char letter = 'a' + (char)(long)self;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[1], &set);
    struct pollfd polled = {ends[1], POLLOUT, 0};
    struct epoll_event event = {0, {0}};
    printf("%d %d ", select(ends[1] + 1, NULL, &set, NULL, NULL), poll(&polled, 1, -1));
    printf("%zd ", write(ends[1], &letter, 1));
    printf("%d\n", epoll_wait(waiting, &event, 1, -1));
    return NULL;
}

static void *close_end(void *self)
{
    printf("%d\n", self == NULL ? close(ends[1]) : fails(close(ends[1])));
    return NULL;
}

int main(void)
{
    char text[100];
    fd = mkstemp(path);
    pthread_barrier_init(&all, NULL, THREADS);
    printf("%zd ", write(fd, "zero.one..two..threefour.", 25));
    printf("%ld\n", (long)lseek(fd, 0, SEEK_SET));
    in_turn(next_word);
    next_word((void *)9);
    at_once(part);

    /* What threads have opened, others use and close. */
    in_turn(open_another);
    in_turn(use_theirs);
    for (int i = 0; i < THREADS; i++)
        printf("%d ", fails(read(theirs[i], text, 1)));

    /* The same number means another file afterwards, everywhere. */
    in_turn(which);
    int before = fd;
    close(fd);
    in_turn(which);
    fd = open("/dev/null", O_RDWR);
    printf("same number: %d\n", fd == before);
    in_turn(which);
    FILE *stream = fdopen(fd, "r");
    in_turn(which);
    fclose(stream);
    in_turn(which);
    fd = open(path, O_RDWR);
    in_turn(which);
    int null = open("/dev/null", O_RDWR);
    dup2(null, fd);
    in_turn(which);

    /* A pipe ends when its last writer has closed it. */
    if (pipe(ends) != 0)
        abort();
    waiting = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {0}};
    printf("%d\n", epoll_ctl(waiting, EPOLL_CTL_ADD, ends[0], &event));
    in_turn(say);
    in_turn(close_end);
    printf("%zd ", read(ends[0], text, sizeof text));
    printf("%.4s ", text);
    printf("%zd\n", read(ends[0], text, sizeof text));
    return unlink(path);
}
