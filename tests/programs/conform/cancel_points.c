/* Threads are cancelled in calls of the system that wait, and before calls that do not. */
#include "../harness.h"
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

int __xpg_sigpause(int); /* which sigpause is */

static int sockets[2], files, queue;
static sem_t ready, go, one;

static void wait_in(int way)
{
    char byte;
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    struct mmsghdr messages = {.msg_hdr = message};
    struct timespec soon;
    struct {
        long type;
        char text[8];
    } received;
    switch (way) {
    case 0:
        recvmsg(sockets[0], &message, 0);
        break;
    case 1:
        recvmmsg(sockets[0], &messages, 1, 0, NULL);
        break;
    case 2:
        msgrcv(queue, &received, sizeof received.text, 0, 0);
        break;
    case 3:
        __xpg_sigpause(SIGUSR1);
        break;
    default: /* Those that do not wait: the request is there first. */
        sem_wait(&go);
        if (way == 4)
            sendmmsg(sockets[1], &messages, 1, 0);
        else if (way == 5)
            preadv2(files, &vector, 1, 0, 0);
        else {
            clock_gettime(CLOCK_REALTIME, &soon);
            soon.tv_sec++;
            sem_timedwait(&one, &soon);
        }
    }

}

enum { WAYS = 7, EARLY = 4 };

static void *run(void *way)
{
    int before;
    /* The semaphore is a cancellation point, too. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    sem_post(&ready);
    if ((long)way >= EARLY)
        sem_wait(&go);
    sem_post(&go);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    wait_in((int)(long)way);
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 2);
    sem_init(&ready, 0, 0);
    EXPECT(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets));
    queue = msgget(IPC_PRIVATE, 0600 | IPC_CREAT);
    files = open("/dev/zero", O_RDONLY);
    for (long i = 0; i < iterations * WAYS; i++) {
        pthread_t thread;
        void *value;
        const long way = i % WAYS;
        sem_init(&go, 0, 0);
        sem_init(&one, 0, 1);
        pthread_create(&thread, NULL, run, (void *)way);
        sem_wait(&ready);
        if (way < EARLY)
            usleep(10000);
        EXPECT(0, pthread_cancel(thread));
        sem_post(&go);
        EXPECT(0, pthread_join(thread, &value));
        if (value != PTHREAD_CANCELED)
            fail("way %ld was not cancelled", way);
    }
    EXPECT(0, msgctl(queue, IPC_RMID, NULL));
    return pass();
}
