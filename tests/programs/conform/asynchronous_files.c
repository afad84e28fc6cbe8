/* Asynchronous input and output of files, by threads that have not opened them. */
#include "../harness.h"
#include <aio.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

enum { LENGTH = 300000, PARTS = 4 };
static int file;
static char *text;
static sem_t called;
static int value;

static void finish(struct aiocb *control, long result)
{
    const struct aiocb *list[] = {control};
    while (aio_error(control) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    EXPECT(0, aio_error(control));
    EXPECT(AIO_ALLDONE, aio_cancel(file, control));
    EXPECT(result, aio_return(control));
}

static void call(union sigval given)
{
    value = given.sival_int;
    sem_post(&called);
}

static long work(void)
{
    char *got = calloc(1, LENGTH);
    struct aiocb out = {.aio_fildes = file, .aio_buf = text, .aio_nbytes = LENGTH, .aio_offset = 100};
    struct aiocb in = {.aio_fildes = file, .aio_buf = got, .aio_nbytes = LENGTH, .aio_offset = 100};
    out.aio_sigevent.sigev_notify = in.aio_sigevent.sigev_notify = SIGEV_NONE;
    EXPECT(0, aio_write(&out));
    finish(&out, LENGTH);
    struct aiocb lasting = {.aio_fildes = file, .aio_sigevent.sigev_notify = SIGEV_NONE};
    EXPECT(0, aio_fsync(O_SYNC, &lasting));
    finish(&lasting, 0);
    EXPECT(0, aio_read(&in));
    finish(&in, LENGTH);
    EXPECT(0, memcmp(got, text, LENGTH));

    /* Beyond the end, and from what is not open. */
    in.aio_offset = LENGTH + 50;
    EXPECT(0, aio_read(&in));
    finish(&in, 50);
    in.aio_fildes = 900;
    EXPECT(0, aio_read(&in));
    while (aio_error(&in) == EINPROGRESS)
        usleep(100);
    EXPECT(EBADF, aio_error(&in));
    EXPECT(-1, aio_return(&in));

    /* A list. */
    struct aiocb parts[PARTS], *list[PARTS + 1] = {0};
    memset(got, 0, LENGTH);
    memset(parts, 0, sizeof parts);
    for (int i = 0; i < PARTS; i++) {
        parts[i] = (struct aiocb){.aio_fildes = file, .aio_lio_opcode = LIO_READ, .aio_buf = got + i * 1000,
                                  .aio_nbytes = 1000, .aio_offset = 100 + i * 1000};
        parts[i].aio_sigevent.sigev_notify = SIGEV_NONE;
        list[i] = &parts[i];
    }
    EXPECT(0, lio_listio(LIO_WAIT, list, PARTS + 1, NULL));
    EXPECT(0, memcmp(got, text, PARTS * 1000));

    /* By a signal, and by a thread. */
    sigset_t set;
    siginfo_t info;
    EXPECT(0, sigemptyset(&set) | sigaddset(&set, SIGRTMIN));
    in = (struct aiocb){.aio_fildes = file, .aio_buf = got, .aio_nbytes = 10, .aio_offset = 100};
    in.aio_sigevent.sigev_notify = SIGEV_SIGNAL;
    in.aio_sigevent.sigev_signo = SIGRTMIN;
    in.aio_sigevent.sigev_value.sival_int = 5;
    EXPECT(0, aio_read(&in));
    EXPECT(SIGRTMIN, sigwaitinfo(&set, &info));
    finish(&in, 10);
    in.aio_sigevent.sigev_notify = SIGEV_THREAD;
    in.aio_sigevent.sigev_notify_function = call;
    in.aio_sigevent.sigev_notify_attributes = NULL;
    in.aio_sigevent.sigev_value.sival_int = 7;
    EXPECT(0, aio_read(&in));
    EXPECT(0, sem_wait(&called));
    EXPECT(7, value);
    finish(&in, 10);
    free(got);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 2);
    sigset_t set;
    EXPECT(0, sigemptyset(&set) | sigaddset(&set, SIGRTMIN));
    EXPECT(0, pthread_sigmask(SIG_BLOCK, &set, NULL));
    EXPECT(0, sem_init(&called, 0, 0));
    char path[] = "/tmp/asynchronous.XXXXXX";
    file = mkstemp(path);
    REQUIRE(file > 2);
    EXPECT(0, unlink(path));
    text = malloc(LENGTH);
    for (int i = 0; i < LENGTH; i++)
        text[i] = (char)(i * 3 + i / 1000);
    for (long i = 0; i < iterations; i++) {
        in_new_thread(work);
        EXPECT(0, ftruncate(file, 0));
        work();
    }
    return pass();
}
