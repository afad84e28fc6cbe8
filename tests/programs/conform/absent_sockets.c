/* Calls that move data, name sockets or wait for descriptors. */
#include "../absent.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define ONE memory
#define TWO (memory + PAGE)
#define THREE (memory + 2 * PAGE)
#define FOUR (memory + 3 * PAGE)
#define AS(type, place) ((type *)(place))

static void close_both(const int *ends)
{
    EXPECT(0, close(ends[0]) | close(ends[1]));
}

static void pairs(char *memory)
{
    EXPECT(0, pipe(AS(int, ONE)));
    close_both(AS(int, ONE));
    EXPECT(0, pipe2(AS(int, TWO), 0));
    close_both(AS(int, TWO));
    EXPECT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, AS(int, THREE)));
    close_both(AS(int, THREE));
}

static void address(char *memory)
{
    struct sockaddr_in *any = AS(struct sockaddr_in, ONE);
    any->sin_family = AF_INET;
    any->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *AS(socklen_t, TWO) = sizeof *any;
    *AS(int, THREE) = 1;
    *AS(socklen_t, FOUR) = sizeof(int);
}

static void names(char *memory)
{
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(0, setsockopt(server, SOL_SOCKET, SO_REUSEADDR, THREE, sizeof(int)));
    EXPECT(0, getsockopt(server, SOL_SOCKET, SO_REUSEADDR, THREE + 8, AS(socklen_t, FOUR)));
    EXPECT(1, *AS(int, THREE + 8));
    EXPECT(0, bind(server, AS(struct sockaddr, ONE), sizeof(struct sockaddr_in)));
    EXPECT(0, listen(server, 1));
    EXPECT(0, getsockname(server, AS(struct sockaddr, ONE), AS(socklen_t, TWO)));
    EXPECT(0, connect(client, AS(struct sockaddr, ONE), sizeof(struct sockaddr_in)));
    int accepted = accept(server, NULL, NULL);
    REQUIRE(accepted > 0);
    EXPECT(0, getpeername(client, AS(struct sockaddr, ONE), AS(socklen_t, TWO)));
    EXPECT(0, close(accepted) | close(client) | close(server));
}

static void connects(char *memory)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof any;
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(0, bind(server, (struct sockaddr *)&any, length) | listen(server, 1));
    EXPECT(0, getsockname(server, (struct sockaddr *)&any, &length));
    EXPECT(0, connect(client, (struct sockaddr *)&any, length));
    int accepted = accept4(server, AS(struct sockaddr, ONE), AS(socklen_t, TWO), SOCK_CLOEXEC);
    REQUIRE(accepted > 0);
    EXPECT(AF_INET, AS(struct sockaddr, ONE)->sa_family);
    EXPECT(0, close(accepted) | close(client) | close(server));
}

static void data(char *memory)
{
    memset(memory, 'd', 2 * PAGE);
    AS(struct iovec, FOUR)[0] = (struct iovec){ONE, 1000};
    AS(struct iovec, FOUR)[1] = (struct iovec){TWO, 1000};
    AS(struct msghdr, FOUR + 1000)->msg_iov = AS(struct iovec, FOUR);
    AS(struct msghdr, FOUR + 1000)->msg_iovlen = 2;
    AS(struct mmsghdr, FOUR + 2000)->msg_hdr = *AS(struct msghdr, FOUR + 1000);
}

static void one_way(char *memory)
{
    int ends[2];
    EXPECT(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    EXPECT(2 * PAGE, send(ends[0], ONE, 2 * PAGE, 0));
    EXPECT(PAGE, recv(ends[1], THREE, PAGE, 0));
    EXPECT('d', THREE[PAGE - 1]);
    EXPECT(2000, writev(ends[0], AS(struct iovec, FOUR), 2));
    EXPECT(2000, readv(ends[1], AS(struct iovec, FOUR), 2));
    close_both(ends);
}

static void messages(char *memory)
{
    int ends[2];
    EXPECT(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    EXPECT(2000, sendmsg(ends[0], AS(struct msghdr, FOUR + 1000), 0));
    EXPECT(2000, recvmsg(ends[1], AS(struct msghdr, FOUR + 1000), 0));
    EXPECT(2, write(ends[0], "ab", 2));
    EXPECT(2, recvfrom(ends[1], THREE, PAGE, 0, NULL, NULL));
    close_both(ends);
}

static void batches(char *memory)
{
    int ends[2];
    EXPECT(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    EXPECT(1, sendmmsg(ends[0], AS(struct mmsghdr, FOUR + 2000), 1, 0));
    EXPECT(1, recvmmsg(ends[1], AS(struct mmsghdr, FOUR + 2000), 1, 0, NULL));
    EXPECT(2000, AS(struct mmsghdr, FOUR + 2000)->msg_len);
    close_both(ends);
}

static void files(char *memory)
{
    FILE *file = tmpfile();
    int fd = fileno(file);
    EXPECT(2000, pwritev2(fd, AS(struct iovec, FOUR), 2, 100, 0));
    EXPECT(2000, preadv2(fd, AS(struct iovec, FOUR), 2, 100, 0));
    EXPECT(2000, pwritev(fd, AS(struct iovec, FOUR), 2, 3000));
    EXPECT(PAGE, pread(fd, THREE, PAGE, 50));
    EXPECT('d', THREE[50]);
    rewind(file);
    EXPECT(2 * PAGE, fwrite_unlocked(ONE, 1, 2 * PAGE, file));
    rewind(file);
    EXPECT(2 * PAGE, fread_unlocked(ONE, 1, 2 * PAGE, file));
    EXPECT(0, fclose(file));
}

static void prints(char *memory)
{
    int ends[2];
    EXPECT(0, pipe(ends));
    EXPECT(100, dprintf(ends[1], "%.100s", ONE));
    EXPECT(100, read(ends[0], THREE, PAGE));
    close_both(ends);
}

static void waiting(char *memory)
{
    AS(struct timeval, TWO)->tv_usec = 1000;
    AS(struct timespec, THREE)->tv_nsec = 1000;
    sigemptyset(AS(sigset_t, FOUR));
    AS(struct epoll_event, FOUR + 1000)->events = EPOLLOUT;
    *AS(struct pollfd, FOUR + 2000) = (struct pollfd){-1, POLLIN, 0};
}

static void waits(char *memory)
{
    int ends[2];
    EXPECT(0, pipe(ends));
    FD_SET(ends[0], AS(fd_set, ONE));
    EXPECT(0, select(ends[0] + 1, AS(fd_set, ONE), NULL, NULL, AS(struct timeval, TWO)));
    EXPECT(0, pselect(ends[0] + 1, AS(fd_set, ONE), NULL, NULL, AS(struct timespec, THREE), AS(sigset_t, FOUR)));
    EXPECT(0, poll(AS(struct pollfd, FOUR + 2000), 1, 1));
    close_both(ends);
}

static void waits_otherwise(char *memory)
{
    int ends[2], set = epoll_create1(0);
    EXPECT(0, pipe(ends));
    EXPECT(0, epoll_ctl(set, EPOLL_CTL_ADD, ends[1], AS(struct epoll_event, FOUR + 1000)));
    EXPECT(1, epoll_pwait(set, AS(struct epoll_event, ONE), 5, 1000, AS(sigset_t, FOUR)));
    EXPECT(1, epoll_wait(set, AS(struct epoll_event, TWO), 5, 1000));
    EXPECT(0, ppoll(AS(struct pollfd, FOUR + 2000), 1, AS(struct timespec, THREE), AS(sigset_t, FOUR)));
    EXPECT(0, close(set));
    close_both(ends);
}

static void counts(char *memory)
{
    int event = eventfd(3, 0);
    EXPECT(0, eventfd_read(event, AS(eventfd_t, ONE)));
    EXPECT(3, *AS(eventfd_t, ONE));
    EXPECT(0, close(event));
    int signals = signalfd(-1, AS(sigset_t, FOUR), 0);
    REQUIRE(signals > 0);
    EXPECT(0, close(signals));
}

static const struct job all[] = {
    {"pipe", NULL, pairs},       {"bind", address, names},      {"accept4", address, connects},
    {"send", data, one_way},     {"sendmsg", data, messages},   {"sendmmsg", data, batches},
    {"preadv2", data, files},    {"dprintf", data, prints},     {"select", waiting, waits},
    {"epoll", waiting, waits_otherwise}, {"signalfd", waiting, counts},
};

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 1);
    return run_jobs(all, sizeof all / sizeof *all);
}
