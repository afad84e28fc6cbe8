/* Pointers to where no memory is make calls fail with EFAULT, also calls on descriptors that a thread of another node has opened. What is there
 * up to such a place is written. */
#include "../harness.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

static int file, ends[2], sockets[2], watch;

/* Nothing is there: at an address that nobody has, at one that is none, and behind a page. */
static char *page;

#define FAULTS(call)                                                            \
    do {                                                                        \
        errno = 0;                                                              \
        EXPECT(-1, call);                                                       \
        EXPECT(EFAULT, errno);                                                  \
    } while (0)

static void with(void *wild)
{
    socklen_t length = 16;
    struct iovec piece = {wild, 8};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    FAULTS(write(file, wild, 8));
    FAULTS(pwrite(file, wild, 8, 0));
    FAULTS(read(file, wild, 8));
    FAULTS(pread(file, wild, 8, 0));
    FAULTS(readv(file, wild, 1));
    FAULTS(writev(file, wild, 2));
    FAULTS(writev(file, &piece, 1));
    FAULTS(fstat(file, wild));
    FAULTS(fstatfs(file, wild));
    FAULTS(fcntl(file, F_GETLK, wild));
    FAULTS(write(ends[1], wild, 8));
    FAULTS(ioctl(ends[0], FIONREAD, wild));
    FAULTS(getsockname(sockets[0], wild, &length));
    FAULTS(getsockname(sockets[0], (void *)page, wild));
    FAULTS(getsockopt(sockets[0], SOL_SOCKET, SO_TYPE, wild, &length));
    FAULTS(setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, wild, sizeof(int)));
    FAULTS(send(sockets[0], wild, 8, 0));
    FAULTS(sendmsg(sockets[0], wild, 0));
    FAULTS(sendmsg(sockets[0], &message, 0));
    FAULTS(recvmsg(sockets[0], wild, MSG_DONTWAIT));
    FAULTS(poll(wild, 1, 0));
    FAULTS(epoll_ctl(watch, EPOLL_CTL_ADD, ends[0], wild));
    FAULTS(select(ends[0] + 1, wild, NULL, NULL, NULL));
}

static long all(void)
{
    with((void *)8);
    with((void *)0x123456789abcdef0);
    with(page + PAGE);
    /* The event is not asked for what is taken away. */
    EXPECT(0, epoll_ctl(watch, EPOLL_CTL_DEL, ends[1], (void *)8));
    struct epoll_event event = {.events = EPOLLOUT};
    EXPECT(0, epoll_ctl(watch, EPOLL_CTL_ADD, ends[1], &event));
    /* Up to the end of the memory. */
    memcpy(page + PAGE - 4, "abcd", 4);
    EXPECT(4, pwrite(file, page + PAGE - 4, 100, 0));
    EXPECT(4, write(ends[1], page + PAGE - 4, 4));
    /* Fewer bytes come than there is said to be room for. */
    memset(page, 0, PAGE);
    EXPECT(4, read(ends[0], page + PAGE - 4, 100));
    EXPECT(0, memcmp(page + PAGE - 4, "abcd", 4));
    EXPECT(4, pread(file, page + PAGE - 4, 4, 0));
    EXPECT(0, memcmp(page + PAGE - 4, "abcd", 4));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 1);
    char path[] = "/tmp/wild_pointers.XXXXXX";
    struct epoll_event event = {.events = EPOLLOUT};
    EXPECT(SIG_DFL, signal(SIGPIPE, SIG_IGN));
    file = mkstemp(path);
    watch = epoll_create1(0);
    REQUIRE(file > 2 && watch > 2);
    EXPECT(0, unlink(path) | pipe(ends) | socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    EXPECT(0, epoll_ctl(watch, EPOLL_CTL_ADD, ends[1], &event));
    EXPECT(8, pwrite(file, "01234567", 8, 0));
    page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    EXPECT(0, mprotect(page + PAGE, PAGE, PROT_NONE));
    for (int i = 0; i < threads; i++)
        in_new_thread(all);
    all();
    return pass();
}
