/* Threads that know of each other only by pipes, sockets, signals and the like see what the other has written before. */
#include "../harness.h"
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WORDS = 3000, TEXT = 64 };
static int words[WORDS];

/* The channels of the kind at hand: from main to the other thread, and back. */
static int in[2], out[2], watch[2];
static mqd_t queues[2];
static int set_id, queue_id;

static void take_byte(int side)
{
    char byte;
    EXPECT(1, read(in[side], &byte, 1));
}

static void give_byte(int side)
{
    EXPECT(1, write(out[side], "x", 1));
}

static void make_pipes(void)
{
    int there[2], back[2];
    EXPECT(0, pipe(there) | pipe(back));
    in[0] = back[0], out[0] = there[1];
    in[1] = there[0], out[1] = back[1];
}

static void make_sockets(void)
{
    int ends[2];
    EXPECT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    in[0] = out[0] = ends[0];
    in[1] = out[1] = ends[1];
}

static void take_message(int side)
{
    char byte;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    EXPECT(1, recvmsg(in[side], &message, 0));
}

static void give_message(int side)
{
    struct iovec piece = {"x", 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    EXPECT(1, sendmsg(out[side], &message, 0));
}

static void make_events(void)
{
    int there = eventfd(0, 0), back = eventfd(0, 0);
    in[0] = out[1] = back;
    in[1] = out[0] = there;
}

static void take_event(int side)
{
    eventfd_t count;
    EXPECT(0, eventfd_read(in[side], &count));
}

static void give_event(int side)
{
    EXPECT(0, eventfd_write(out[side], 1));
}

/* What is ready is enough to know. The byte is read at the next turn, when it tells nothing any more. */
static void take_ready(int side)
{
    static int waited[2];
    if (waited[side])
        take_byte(side);
    waited[side] = 1;
    struct pollfd polled = {in[side], POLLIN, 0};
    EXPECT(1, poll(&polled, 1, -1));
}

static void make_watched(void)
{
    make_sockets();
    for (int side = 0; side < 2; side++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 7};
        watch[side] = epoll_create1(0);
        EXPECT(0, epoll_ctl(watch[side], EPOLL_CTL_ADD, in[side], &event));
    }
}

static void take_watched(int side)
{
    struct epoll_event event;
    EXPECT(1, epoll_wait(watch[side], &event, 1, -1));
    EXPECT(7, event.data.u64);
}

static void make_queues(void)
{
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = TEXT};
    char name[100];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "/gondwana-channels-%d-%d", (int)getpid(), i);
        queues[i] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
        REQUIRE(queues[i] != -1);
        EXPECT(0, mq_unlink(name));
    }
}

static void take_queued(int side)
{
    char text[TEXT];
    unsigned priority = 0;
    EXPECT(6, mq_receive(queues[side], text, sizeof text, &priority));
    EXPECT(3, priority);
    EXPECT(0, memcmp(text, "queued", 6));
}

static void give_queued(int side)
{
    EXPECT(0, mq_send(queues[!side], "queued", 6, 3));
}

struct typed {
    long type;
    char text[TEXT];
};

static void make_old_queue(void)
{
    queue_id = msgget(IPC_PRIVATE, 0600);
    REQUIRE(queue_id >= 0);
}

static void take_old(int side)
{
    struct typed message;
    EXPECT(4, msgrcv(queue_id, &message, TEXT, side + 1, 0));
    EXPECT(0, memcmp(message.text, "text", 4));
}

static void give_old(int side)
{
    struct typed message = {!side + 1, "text"};
    EXPECT(0, msgsnd(queue_id, &message, 4, 0));
}

static void drop_old_queue(void)
{
    EXPECT(0, msgctl(queue_id, IPC_RMID, NULL));
}

static void make_set(void)
{
    set_id = semget(IPC_PRIVATE, 2, 0600);
    REQUIRE(set_id >= 0);
}

static void take_unit(int side)
{
    struct sembuf operation = {side, -1, 0};
    EXPECT(0, semop(set_id, &operation, 1));
}

static void give_unit(int side)
{
    struct sembuf operation = {!side, 1, 0};
    EXPECT(0, semop(set_id, &operation, 1));
}

static void drop_set(void)
{
    EXPECT(0, semctl(set_id, 0, IPC_RMID));
}

/* The name of a pipe in the file system. */
static void make_named(void)
{
    char folder[] = "/tmp/channels.XXXXXX", path[2][100];
    REQUIRE(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/%d", folder, i);
        EXPECT(0, mkfifo(path[i], 0600));
        in[i] = out[!i] = open(path[i], O_RDWR);
        REQUIRE(in[i] > 2);
        EXPECT(0, unlink(path[i]));
    }
    EXPECT(0, rmdir(folder));
}

/* One lock of a file for each side to wait at, and one that says whose turn it is: both by descriptors of their own. */
static int locks[2];
static int turn;

static void make_locks(void)
{
    char path[] = "/tmp/channels.XXXXXX";
    locks[0] = mkstemp(path);
    locks[1] = open(path, O_RDWR);
    REQUIRE(locks[0] > 2 && locks[1] > 2);
    EXPECT(0, unlink(path));
    turn = 0;
}

static void take_turn(int side)
{
    for (;;) {
        EXPECT(0, flock(locks[side], LOCK_EX));
        if (turn == side)
            break;
        EXPECT(0, flock(locks[side], LOCK_UN));
        usleep(50);
    }
    EXPECT(0, flock(locks[side], LOCK_UN));
}

static void give_turn(int side)
{
    EXPECT(0, flock(locks[side], LOCK_EX));
    turn = !side;
    EXPECT(0, flock(locks[side], LOCK_UN));
}

/* Signals: waited for, or handled. All are blocked elsewhere. */
static pthread_t sides[2];
static sigset_t used;
static volatile sig_atomic_t handled[2];

static void take_signal(int side)
{
    int signal = side;
    EXPECT(0, sigwait(&used, &signal));
    EXPECT(SIGUSR1, signal);
}

static void give_signal(int side)
{
    EXPECT(0, pthread_kill(sides[!side], SIGUSR1));
}

static void handle(int signal)
{
    (void)signal;
    handled[!pthread_equal(pthread_self(), sides[0])]++;
}

static void take_handled(int side)
{
    sigset_t others;
    EXPECT(0, pthread_sigmask(SIG_BLOCK, NULL, &others));
    EXPECT(0, sigdelset(&others, SIGUSR2));
    while (!handled[side])
        sigsuspend(&others);
    handled[side] = 0;
}

static void give_handled(int side)
{
    EXPECT(0, pthread_kill(sides[!side], SIGUSR2));
}

static void nothing(void)
{
}

static const struct kind {
    const char *name;
    void (*make)(void), (*take)(int), (*give)(int), (*drop)(void);
} kinds[] = {
    {"pipe", make_pipes, take_byte, give_byte, nothing},
    {"named pipe", make_named, take_byte, give_byte, nothing},
    {"socket", make_sockets, take_byte, give_byte, nothing},
    {"message", make_sockets, take_message, give_message, nothing},
    {"event", make_events, take_event, give_event, nothing},
    {"poll", make_pipes, take_ready, give_byte, nothing},
    {"epoll", make_watched, take_watched, give_byte, nothing},
    {"message queue", make_queues, take_queued, give_queued, nothing},
    {"old message queue", make_old_queue, take_old, give_old, drop_old_queue},
    {"set of semaphores", make_set, take_unit, give_unit, drop_set},
    {"signal", nothing, take_signal, give_signal, nothing},
    {"handled signal", nothing, take_handled, give_handled, nothing},
    {"lock of a file", make_locks, take_turn, give_turn, nothing},
};
static const struct kind *kind;

/* Each side adds one to every word in turn, and finds what the other has made of them. */
static void check_and_add(int side, long round)
{
    for (int i = 0; i < WORDS; i++) {
        if (words[i] != 2 * round + side)
            fail("%s: side %d found %d in round %ld, expected %ld", kind->name, side, words[i], round, 2 * round + side);
        words[i]++;
    }
}

static long other(void)
{
    for (long round = 0; round < iterations; round++) {
        kind->take(1);
        check_and_add(1, round);
        kind->give(1);
    }
    return 0;
}

static void *run_other(void *unused)
{
    other();
    return unused;
}

/* Bytes end where the other side closes its end. */
static int end_of[2];

static void *closes(void *unused)
{
    memset(words, 0x11, sizeof words);
    EXPECT(0, close(end_of[1]));
    return unused;
}

static void end_of_file(void)
{
    pthread_t id;
    char byte;
    EXPECT(0, pipe(end_of));
    memset(words, 0, sizeof words);
    EXPECT(0, pthread_create(&id, NULL, closes, NULL));
    EXPECT(0, read(end_of[0], &byte, 1));
    for (int i = 0; i < WORDS; i++)
        EXPECT(0x11111111, words[i]);
    EXPECT(0, pthread_join(id, NULL));
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 20);
    struct sigaction action = {.sa_handler = handle};
    EXPECT(0, sigaction(SIGUSR2, &action, NULL));
    EXPECT(0, sigemptyset(&used) | sigaddset(&used, SIGUSR1) | sigaddset(&used, SIGUSR2));
    EXPECT(0, pthread_sigmask(SIG_BLOCK, &used, NULL));
    EXPECT(0, sigdelset(&used, SIGUSR2));
    sides[0] = pthread_self();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        pthread_t id;
        kind = &kinds[i];
        memset(words, 0, sizeof words);
        kind->make();
        EXPECT(0, pthread_create(&id, NULL, run_other, NULL));
        sides[1] = id;
        for (long round = 0; round < iterations; round++) {
            check_and_add(0, round);
            kind->give(0);
            kind->take(0);
        }
        EXPECT(0, pthread_join(id, NULL));
        kind->drop();
    }
    end_of_file();
    return pass();
}
