/* Whichever thread has made a socket or sent a message: the peer is the program's process. A descriptor of a child waits for it in any thread, and
 * long messages of streams go through sockets of others. */
#include "../harness.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, LONG = 3 << 20 };

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t length;
static int ends[2], socket_of_main, descriptor;
static char *text, *received;

static void is_us(int socket)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    EXPECT(0, getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size));
    EXPECT((long)getpid(), (long)peer.pid);
}

static long connects(int self)
{
    int client = socket(AF_UNIX, SOCK_STREAM, 0), pair[2];
    EXPECT(0, connect(client, (struct sockaddr *)&address, length));
    is_us(client);
    EXPECT(1, write(client, "x", 1));
    EXPECT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    is_us(pair[self % 2]);
    close(pair[0]);
    close(pair[1]);
    close(client);
    return 0;
}

static long accepts(void)
{
    int one = 1;
    for (int i = 0; i < THREADS - 1; i++) {
        int client = accept(socket_of_main, NULL, NULL);
        is_us(client);
        EXPECT(0, setsockopt(client, SOL_SOCKET, SO_PASSCRED, &one, sizeof one));
        char byte, control[256];
        struct iovec part = {&byte, 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        EXPECT(1, recvmsg(client, &message, 0));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (header != NULL && header->cmsg_type == SCM_CREDENTIALS) {
            struct ucred sender;
            memcpy(&sender, CMSG_DATA(header), sizeof sender);
            /* Sent before anybody asked for it, a message has no sender. */
            if (sender.pid != 0)
                EXPECT((long)getpid(), (long)sender.pid);
        }
        close(client);
    }
    return 0;
}

static long connect_or_accept(int self)
{
    return self == 0 ? accepts() : connects(self);
}

static long sends(int self)
{
    struct iovec parts[3] = {{text, 10}, {text + 10, LONG / 2}, {text + 10 + LONG / 2, LONG - 10 - LONG / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    if (self == 0) {
        for (long done = 0; done < LONG;) {
            parts[0] = (struct iovec){received + done, LONG - done};
            message.msg_iovlen = 1;
            long more = recvmsg(ends[1], &message, done == 0 ? 0 : MSG_WAITALL);
            EXPECT(1, more > 0);
            done += more;
        }
        EXPECT(0, memcmp(text, received, LONG));
    } else if (self == 1) {
        EXPECT(LONG, sendmsg(ends[0], &message, MSG_NOSIGNAL));
    }
    return 0;
}

static long waits(int self)
{
    siginfo_t info;
    if (self == THREADS - 1) {
        EXPECT(0, waitid(P_PIDFD, descriptor, &info, WEXITED));
        EXPECT(7, info.si_status);
        EXPECT(-1, waitid(P_PIDFD, 12345, &info, WEXITED));
    }
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    length = 3 + sprintf(address.sun_path + 1, "peer_identity-%d", (int)getpid());
    socket_of_main = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT(0, bind(socket_of_main, (struct sockaddr *)&address, length));
    EXPECT(0, listen(socket_of_main, THREADS));
    run_threads(THREADS, connect_or_accept);

    text = malloc(LONG);
    received = calloc(1, LONG);
    for (int i = 0; i < LONG; i++)
        text[i] = (char)(i * 2654435761u >> 13);
    EXPECT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    run_threads(THREADS, sends);

    pid_t child = fork();
    if (child == 0)
        _exit(7);
    descriptor = (int)syscall(SYS_pidfd_open, child, 0);
    run_threads(THREADS, waits);
    return pass();
}
