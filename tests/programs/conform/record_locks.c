/* Record locks belong to the process: threads do not keep each other out, other processes are kept out by what any thread has locked, and a
 * descriptor that any thread closes gives all of them up. */
#include "../harness.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, RECORD = 10 };

static char path[64];
static pthread_barrier_t barrier;

/* Gives 0 or the error number. */
static int try(int file, int command, int kind, long start, long length)
{
    struct flock lock = {.l_type = (short)kind, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    return fcntl(file, command, &lock) ? errno : 0;
}

/* The kind of lock that keeps this process from a record; F_UNLCK if none does. */
static int found(int file, long start)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = RECORD, .l_pid = -7};
    EXPECT(0, fcntl(file, F_GETLK, &lock));
    if (lock.l_type == F_UNLCK)
        EXPECT(-7, (int)lock.l_pid);
    return lock.l_type;
}

/* The records that another process finds locked, as bits. */
static int taken(void)
{
    pid_t child = fork();
    if (child == 0) {
        int file = open(path, O_RDWR), bits = 0;
        for (int i = 0; i < THREADS + 1; i++)
            bits |= (try(file, F_SETLK, F_WRLCK, i * RECORD, RECORD) == EAGAIN) << i;
        _exit(bits);
    }
    int status;
    EXPECT((long)child, (long)waitpid(child, &status, 0));
    return WEXITSTATUS(status);
}

static void meet(void)
{
    pthread_barrier_wait(&barrier);
}

static long lock_and_unlock(int self)
{
    int file = open(path, O_RDWR), more = open(path, self % 2 ? O_RDONLY : O_WRONLY);
    meet();
    if (self == 1) {
        EXPECT(0x1f, taken());
        EXPECT(0, try(file, F_SETLK, F_UNLCK, 0, 0));
        EXPECT(0, taken());
    }
    meet();

    /* Each its own record, and all the same one, with and without waiting. */
    EXPECT(0, try(file, F_SETLK, F_WRLCK, self * RECORD, RECORD));
    EXPECT(0, try(file, self % 2 ? F_SETLKW : F_SETLK, F_WRLCK, THREADS * RECORD, RECORD));
    meet();
    for (int i = 0; i < THREADS + 1; i++)
        EXPECT(F_UNLCK, found(file, i * RECORD));
    if (self == 1)
        EXPECT(0x1f, taken());
    meet();

    /* A thread gives up what another has locked. */
    if (self == 2)
        EXPECT(0, try(file, F_SETLK, F_UNLCK, 1 * RECORD, RECORD));
    meet();
    if (self == 0)
        EXPECT(0x1d, taken());
    meet();

    /* What the descriptor does not allow. */
    EXPECT(self % 2 ? EBADF : 0, try(more, F_SETLK, F_WRLCK, 1000 + self, 1));
    EXPECT(self % 2 ? 0 : EBADF, try(more, F_SETLK, F_RDLCK, 1000 + self, 1));
    EXPECT(EINVAL, try(file, F_SETLK, 17, 0, 1));
    errno = 0;
    EXPECT(-1, fcntl(file, F_SETLK, NULL));
    EXPECT(EFAULT, errno);
    meet();

    /* Positions are those of the descriptor. */
    if (self == 3) {
        EXPECT(1 * RECORD, (int)lseek(file, 1 * RECORD, SEEK_SET));
        EXPECT(0, lockf(file, F_TLOCK, RECORD));
        EXPECT(0, lockf(file, F_TEST, RECORD));
        EXPECT(0x1f, taken());
        EXPECT(0, lockf(file, F_ULOCK, RECORD));
        EXPECT(0x1d, taken());
    }
    meet();

    /* Closing one descriptor, by whatever call, gives up all locks of the program. */
    if (self == 1)
        close(more);
    meet();
    if (self == 0)
        EXPECT(0, taken());
    meet();
    EXPECT(0, try(file, F_SETLKW, F_WRLCK, self * RECORD, RECORD));
    meet();
    if (self == 2)
        EXPECT(more, dup2(open("/dev/null", O_RDONLY), more));
    meet();
    if (self == 3)
        EXPECT(0, taken());
    meet();
    EXPECT(0, try(file, F_SETLK, F_RDLCK, self * RECORD, RECORD));
    meet();
    if (self == 3) {
        EXPECT(0xf, taken());
        fclose(fdopen(more, "r"));
        EXPECT(0, taken());
    }
    meet();

    /* A lock that another process has, until it ends. */
    static int tell[2];
    if (self == 0) {
        EXPECT(0, pipe(tell));
        pid_t child = fork();
        if (child == 0) {
            int own = open(path, O_RDWR);
            int result = try(own, F_SETLK, F_WRLCK, 0, RECORD);
            write(tell[1], &result, sizeof result);
            usleep(50000);
            _exit(0);
        }
        int result;
        EXPECT((long)sizeof result, (long)read(tell[0], &result, sizeof result));
        EXPECT(0, result);
        meet();
        meet();
        int status;
        EXPECT((long)child, (long)waitpid(child, &status, 0));
    } else {
        meet();
        if (self == 1) {
            EXPECT(F_WRLCK, found(file, 0));
            EXPECT(EAGAIN, try(file, F_SETLK, F_WRLCK, 0, RECORD));
            EXPECT(0, try(file, F_SETLKW, F_WRLCK, 0, RECORD));
            EXPECT(0, try(file, F_SETLK, F_UNLCK, 0, RECORD));
        }
        meet();
    }

    /* Locks of open files keep threads out that have opened it for themselves. */
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    static long count;
    for (int i = 0; i < 50; i++) {
        whole.l_type = F_WRLCK;
        EXPECT(0, fcntl(file, F_OFD_SETLKW, &whole));
        count++;
        whole.l_type = F_UNLCK;
        EXPECT(0, fcntl(file, F_OFD_SETLK, &whole));
    }
    meet();
    EXPECT(THREADS * 50, (int)count);
    close(file);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    snprintf(path, sizeof path, "/tmp/record_locks.%d", (int)getpid());
    int file = open(path, O_RDWR | O_CREAT, 0600);
    /* What main has locked before there were threads, they unlock. */
    EXPECT(0, try(file, F_SETLK, F_WRLCK, 0, (THREADS + 2) * RECORD));
    pthread_barrier_init(&barrier, NULL, THREADS);
    run_threads(THREADS, lock_and_unlock);
    unlink(path);
    return pass();
}
