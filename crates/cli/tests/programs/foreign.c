/* Uses, in a thread on another node, a descriptor of that node together with one that main has opened. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <unistd.h>

static int fd;

/* A call that must fail, with this error. */
#define FAILS(error, call)                                              \
    do {                                                                \
        errno = 0;                                                      \
        long result = (long)(call);                                     \
        if (result != -1 || errno != (error))                           \
            printf("%s: %ld, errno %d\n", #call, result, errno);        \
    } while (0)

static void *work(void *unused)
{
    char byte = 0;
    int own = open(__FILE__, O_RDONLY), ends[2];
    if (pipe(ends) != 0)
        printf("no pipe\n");
    FAILS(EBADF, dup2(fd, own));
    FAILS(EBADF, dup2(own, fd));
    FAILS(EINVAL, sendfile(ends[1], fd, NULL, 4));
    FAILS(EINVAL, splice(fd, NULL, ends[1], NULL, 4, 0));
    FAILS(EXDEV, copy_file_range(fd, NULL, own, NULL, 4, 0));
    if (own == fd || read(own, &byte, 1) != 1 || byte != '/' || close(own) != 0)
        printf("the thread's own file is not right\n");
    return unused;
}

int main(int argc, char **argv)
{
    char text[5] = "";
    pthread_t thread;
    (void)argc;
    fd = open(argv[0], O_RDONLY);
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    /* Main's file is as it was. */
    printf("%zd ", read(fd, text, 4));
    printf("%s %d\n", text + 1, close(fd));
    return 0;
}
