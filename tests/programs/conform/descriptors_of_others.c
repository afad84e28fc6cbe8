/* A descriptor that one thread has opened is every thread's, whatever is done with it. */
#include "../harness.h"
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LARGE = 3 << 20 };
static char folder[] = "/tmp/descriptors.XXXXXX";
static char large[LARGE], back[LARGE];

/* What one thread has opened for others. */
static int folder_fd, file, pair[2], ends[2], event, timer, notices, listening, watching;
/* A socket whose other end is closed, and a pipe's end that nobody reads from. */
static int unread[2];
static struct sockaddr_in address;

static void open_all(void)
{
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY);
    REQUIRE(folder_fd > 2);
    file = openat(folder_fd, "file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(file > 2);
    EXPECT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    EXPECT(0, pipe(ends));
    event = eventfd(0, EFD_NONBLOCK);
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    notices = inotify_init1(IN_NONBLOCK);
    listening = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof address;
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    EXPECT(0, bind(listening, (struct sockaddr *)&address, size));
    EXPECT(0, getsockname(listening, (struct sockaddr *)&address, &size));
    EXPECT(0, listen(listening, 4));
    watching = epoll_create1(0);
    REQUIRE(watching > 2);
    int sockets[2], pipes[2];
    EXPECT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) | pipe(pipes));
    EXPECT(0, close(sockets[1]) | close(pipes[0]));
    unread[0] = sockets[0], unread[1] = pipes[1];
}

static void close_all(void)
{
    int all[] = {folder_fd, file, pair[0], pair[1], ends[0], ends[1], event, timer, notices, listening, watching, unread[0], unread[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char byte;
        EXPECT(0, close(all[i]));
        errno = 0;
        EXPECT(-1, read(all[i], &byte, 1));
        EXPECT(EBADF, errno);
    }
}

static void files(void)
{
    struct stat found;
    char text[100];
    struct iovec pieces[2] = {{"one ", 4}, {"two", 3}}, parts[2] = {{text, 2}, {text + 50, 40}};
    EXPECT(0, ftruncate(file, 0));
    EXPECT(0, lseek(file, 0, SEEK_SET));
    EXPECT(5, write(file, "zero ", 5));
    EXPECT(7, writev(file, pieces, 2));
    EXPECT(12, lseek(file, 0, SEEK_CUR));
    EXPECT(6, dprintf(file, " %s%d", "thr", 33));
    EXPECT(4, pread(file, text, 4, 9));
    EXPECT(0, memcmp(text, "two ", 4));
    EXPECT(2, pwrite(file, "ZE", 2, 0));
    EXPECT(18, preadv(file, parts, 2, 0));
    EXPECT(0, memcmp(text, "ZE", 2) | memcmp(text + 50, "ro one two thr33", 16));
    EXPECT(4, preadv2(file, parts, 1, 0, 0) + pwritev2(file, parts, 1, 0, 0));
    EXPECT(0, fstat(file, &found));
    EXPECT(18, found.st_size);
    EXPECT(0, fchmod(file, 0640) | fdatasync(file) | fsync(file) | posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM));
    EXPECT(0, fstatat(folder_fd, "file", &found, 0));
    EXPECT(0100640, found.st_mode);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 4};
    EXPECT(0, fcntl(file, F_SETLK, &lock));
    EXPECT(O_RDWR, fcntl(file, F_GETFL) & O_ACCMODE);
    EXPECT(18, lseek(file, 0, SEEK_END));
    /* More than fits into one message. */
    for (int i = 0; i < LARGE; i++)
        large[i] = (char)(i * 7 + i / 4096);
    EXPECT(LARGE, write(file, large, LARGE));
    EXPECT(18, lseek(file, 18, SEEK_SET));
    memset(back, 0, LARGE);
    EXPECT(LARGE, read(file, back, LARGE));
    EXPECT(0, memcmp(large, back, LARGE));
    EXPECT(0, read(file, back, 10));
    void *mapped = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, file, 4096);
    REQUIRE(mapped != MAP_FAILED);
    EXPECT(0, memcmp(mapped, large + 4096 - 18, 8192));
    EXPECT(0, munmap(mapped, 8192));
    char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE(shared != MAP_FAILED);
    shared[3] = 'O';
    EXPECT(0, msync(shared, 4096, MS_SYNC));
    EXPECT(5, pread(file, text, 5, 0));
    EXPECT(0, memcmp(text, "ZErO ", 5));
    EXPECT(0, munmap(shared, 4096));
    FILE *stream = fdopen(dup(file), "r");
    REQUIRE(stream);
    EXPECT(0, fseek(stream, 9, SEEK_SET));
    REQUIRE(fgets(text, 4, stream));
    EXPECT(0, strcmp(text, "two"));
    EXPECT(0, fclose(stream));
    EXPECT(0, isatty(file));
    EXPECT(0, mkdirat(folder_fd, "below", 0700));
    EXPECT(0, renameat(folder_fd, "below", folder_fd, "under"));
    EXPECT(0, faccessat(folder_fd, "under", X_OK, 0));
    EXPECT(0, unlinkat(folder_fd, "under", AT_REMOVEDIR));
    int copy = dup(file), other = fcntl(file, F_DUPFD_CLOEXEC, 20);
    REQUIRE(copy > 2 && other >= 20);
    EXPECT(3, lseek(copy, 3, SEEK_SET));
    EXPECT(3, lseek(other, 0, SEEK_CUR));
    EXPECT(other, dup2(copy, other));
    EXPECT(0, close(copy) | close(other));
    EXPECT(100, copy_file_range(file, &(loff_t){0}, file, &(loff_t){LARGE}, 100, 0));
}

static void channels(void)
{
    char text[100];
    int waiting = 0;
    eventfd_t count;
    EXPECT(4, send(pair[0], "sent", 4, 0));
    EXPECT(0, ioctl(pair[1], FIONREAD, &waiting));
    EXPECT(4, waiting);
    EXPECT(4, recv(pair[1], text, sizeof text, 0));
    EXPECT(0, memcmp(text, "sent", 4));
    int none = 1;
    EXPECT(0, ioctl(pair[1], FIONBIO, &none));
    errno = 0;
    EXPECT(-1, recv(pair[1], text, 1, 0));
    EXPECT(EAGAIN, errno);
    none = 0;
    EXPECT(0, ioctl(pair[1], FIONBIO, &none));
    /* With pieces, and a descriptor that is passed along. */
    struct iovec pieces[2] = {{"ab", 2}, {"cde", 3}}, parts[2] = {{text, 1}, {text + 10, 20}};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof control};
    memset(&control, 0, sizeof control);
    control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &ends[1], sizeof(int));
    EXPECT(5, sendmsg(pair[0], &message, 0));
    memset(&control, 0, sizeof control);
    message.msg_iov = parts;
    EXPECT(5, recvmsg(pair[1], &message, 0));
    EXPECT('a', text[0]);
    EXPECT(0, memcmp(text + 10, "bcde", 4));
    REQUIRE(message.msg_iov == parts && message.msg_iov[1].iov_base == text + 10);
    int passed;
    EXPECT(SCM_RIGHTS, control.header.cmsg_type);
    memcpy(&passed, CMSG_DATA(&control.header), sizeof(int));
    EXPECT(6, write(passed, "passed", 6));
    EXPECT(0, close(passed));
    EXPECT(6, read(ends[0], text, sizeof text));
    EXPECT(0, memcmp(text, "passed", 6));
    /* Batches. */
    struct iovec words[3] = {{"one", 3}, {"two", 3}, {"six", 3}}, places[2] = {{text, 4}, {text + 50, 5}};
    struct mmsghdr sent[3] = {{.msg_len = 0}}, taken[2] = {{.msg_len = 0}};
    for (int i = 0; i < 3; i++)
        sent[i].msg_hdr = (struct msghdr){.msg_iov = &words[i], .msg_iovlen = 1};
    for (int i = 0; i < 2; i++)
        taken[i].msg_hdr = (struct msghdr){.msg_iov = &places[i], .msg_iovlen = 1};
    EXPECT(3, sendmmsg(pair[0], sent, 3, 0));
    EXPECT(3, sent[2].msg_len);
    EXPECT(2, recvmmsg(pair[1], taken, 2, MSG_WAITALL, NULL));
    EXPECT(4, taken[0].msg_len);
    EXPECT(5, taken[1].msg_len);
    EXPECT(0, memcmp(text, "onet", 4) | memcmp(text + 50, "wosix", 5));
    EXPECT(0, eventfd_write(event, 5));
    EXPECT(0, eventfd_read(event, &count));
    EXPECT(5, count);
    struct itimerspec soon = {.it_value.tv_nsec = 1000000};
    uint64_t times;
    EXPECT(0, timerfd_settime(timer, 0, &soon, NULL));
    EXPECT(8, read(timer, &times, 8));
    EXPECT(1, times);
    int watch = inotify_add_watch(notices, folder, IN_CREATE);
    REQUIRE(watch > 0);
    int made = openat(folder_fd, "noticed", O_WRONLY | O_CREAT, 0600);
    REQUIRE(made > 2);
    REQUIRE(read(notices, text, sizeof text) >= (long)sizeof(struct inotify_event));
    EXPECT(0, close(made) | unlinkat(folder_fd, "noticed", 0) | inotify_rm_watch(notices, watch));
    int client = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    EXPECT(0, connect(client, (struct sockaddr *)&address, sizeof address));
    struct sockaddr_in peer, name;
    socklen_t size = sizeof peer, length = sizeof name;
    int server = accept(listening, (struct sockaddr *)&peer, &size);
    REQUIRE(server > 2);
    EXPECT(0, getsockname(client, (struct sockaddr *)&name, &length));
    EXPECT(name.sin_port, peer.sin_port);
    EXPECT(0, setsockopt(server, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes));
    length = sizeof yes;
    EXPECT(0, getsockopt(server, SOL_SOCKET, SO_KEEPALIVE, &yes, &length));
    EXPECT(1, yes);
    EXPECT(3, sendto(server, "abc", 3, 0, NULL, 0));
    EXPECT(3, recvfrom(client, text, sizeof text, 0, NULL, NULL));
    EXPECT(18, sendfile(server, file, &(off_t){0}, 18) < 0 ? 18 : recv(client, text, 18, MSG_WAITALL));
    EXPECT(0, shutdown(server, SHUT_WR));
    EXPECT(0, read(client, text, 1));
    EXPECT(0, close(server) | close(client));
}

/* Waits for descriptors of several threads at once. */
static void waits(void)
{
    int own[2], fresh = eventfd(0, 0);
    char byte;
    EXPECT(0, pipe(own));
    struct pollfd set[] = {{own[0], POLLIN, 0}, {ends[0], POLLIN, 0}, {-1, POLLIN, 0}, {pair[1], POLLIN | POLLOUT, 0}, {file, POLLIN, 0}};
    EXPECT(2, poll(set, 5, -1));
    EXPECT(POLLOUT, set[3].revents);
    EXPECT(POLLIN, set[4].revents);
    EXPECT(0, poll(set, 2, 0));
    EXPECT(0, poll(set, 2, 3));
    EXPECT(1, write(ends[1], "y", 1));
    EXPECT(1, poll(set, 2, -1));
    EXPECT(0, set[0].revents);
    EXPECT(POLLIN, set[1].revents);
    EXPECT(1, write(own[1], "y", 1));
    EXPECT(2, poll(set, 2, -1));
    fd_set reading, writing;
    FD_ZERO(&reading);
    FD_ZERO(&writing);
    FD_SET(own[0], &reading);
    FD_SET(ends[0], &reading);
    FD_SET(event, &reading);
    FD_SET(pair[0], &writing);
    EXPECT(3, select(FD_SETSIZE, &reading, &writing, NULL, NULL));
    REQUIRE(FD_ISSET(own[0], &reading) && FD_ISSET(ends[0], &reading) && !FD_ISSET(event, &reading) && FD_ISSET(pair[0], &writing));
    EXPECT(1, read(ends[0], &byte, 1));
    EXPECT(1, read(own[0], &byte, 1));
    /* The same by epoll: by level, by edge, and once. */
    struct epoll_event events[4], level = {EPOLLIN, {.u64 = 1}}, edge = {EPOLLIN | EPOLLET, {.u64 = 2}}, once = {EPOLLIN | EPOLLONESHOT, {.u64 = 3}};
    EXPECT(0, epoll_ctl(watching, EPOLL_CTL_ADD, own[0], &level));
    EXPECT(0, epoll_ctl(watching, EPOLL_CTL_ADD, ends[0], &edge));
    EXPECT(0, epoll_ctl(watching, EPOLL_CTL_ADD, fresh, &once));
    errno = 0;
    EXPECT(-1, epoll_ctl(watching, EPOLL_CTL_ADD, own[0], &level));
    EXPECT(EEXIST, errno);
    EXPECT(0, epoll_wait(watching, events, 4, 0));
    EXPECT(0, epoll_wait(watching, events, 4, 2));
    EXPECT(1, write(own[1], "z", 1));
    for (int i = 0; i < 3; i++) {
        EXPECT(1, epoll_wait(watching, events, 4, -1));
        EXPECT(1, events[0].data.u64);
        EXPECT(EPOLLIN, events[0].events);
    }
    EXPECT(1, read(own[0], &byte, 1));
    EXPECT(1, write(ends[1], "z", 1));
    EXPECT(1, epoll_wait(watching, events, 4, -1));
    EXPECT(2, events[0].data.u64);
    EXPECT(0, epoll_wait(watching, events, 4, 5));
    EXPECT(0, eventfd_write(fresh, 1));
    EXPECT(1, epoll_wait(watching, events, 1, -1));
    EXPECT(3, events[0].data.u64);
    EXPECT(0, epoll_wait(watching, events, 4, 5));
    EXPECT(0, epoll_ctl(watching, EPOLL_CTL_MOD, fresh, &level));
    EXPECT(1, epoll_wait(watching, events, 4, -1));
    EXPECT(1, read(ends[0], &byte, 1));
    EXPECT(0, epoll_ctl(watching, EPOLL_CTL_DEL, fresh, NULL));
    EXPECT(0, epoll_ctl(watching, EPOLL_CTL_DEL, ends[0], NULL));
    /* By a copy of the descriptor. */
    int copy = dup(watching);
    EXPECT(0, epoll_ctl(watching, EPOLL_CTL_DEL, own[0], NULL));
    EXPECT(0, epoll_ctl(copy, EPOLL_CTL_ADD, own[0], &level));
    EXPECT(1, write(own[1], "z", 1));
    EXPECT(1, epoll_wait(watching, events, 4, -1));
    EXPECT(1, events[0].data.u64);
    EXPECT(1, read(own[0], &byte, 1));
    EXPECT(0, epoll_wait(watching, events, 4, 0));
    EXPECT(0, close(copy));
    EXPECT(0, close(own[0]) | close(own[1]) | close(fresh));
    EXPECT(0, epoll_wait(watching, events, 4, 0));
}

/* A pipe takes more than it holds when another thread reads. */
static void *reads_all(void *unused)
{
    long done = 0;
    while (done < LARGE) {
        long got = read(ends[0], back + done, LARGE - done);
        REQUIRE(got > 0);
        done += got;
    }
    return unused;
}

static void much(void)
{
    pthread_t id;
    memset(back, 0, LARGE);
    EXPECT(0, pthread_create(&id, NULL, reads_all, NULL));
    EXPECT(LARGE, write(ends[1], large, LARGE));
    EXPECT(0, pthread_join(id, NULL));
    EXPECT(0, memcmp(large, back, LARGE));
}

/* A thread that waits at a descriptor can be cancelled, and interrupted. */
static sem_t *at_it;
static void *waits_for_ever(void *unused)
{
    char byte;
    sem_post(at_it);
    for (;;)
        EXPECT(1, read(ends[0], &byte, 1));
    return unused;
}

static void cancelled(void)
{
    pthread_t id;
    void *result;
    EXPECT(0, pthread_create(&id, NULL, waits_for_ever, NULL));
    EXPECT(0, sem_wait(at_it));
    EXPECT(0, pthread_cancel(id));
    EXPECT(0, pthread_join(id, &result));
    REQUIRE(result == PTHREAD_CANCELED);
}

/* Who writes what nobody reads gets a signal, unless it does not want one. */
static volatile sig_atomic_t broken;

static void breaks(int signal)
{
    broken = signal;
}

static void nobody_reads(void)
{
    struct sigaction action = {.sa_handler = breaks}, before;
    int to_nobody[2];
    EXPECT(0, sigaction(SIGPIPE, &action, &before));
    memcpy(to_nobody, unread, sizeof to_nobody);
    broken = 0;
    errno = 0;
    EXPECT(-1, write(to_nobody[1], "x", 1));
    EXPECT(EPIPE, errno);
    EXPECT(SIGPIPE, broken);
    broken = 0;
    EXPECT(-1, send(to_nobody[0], "x", 1, MSG_NOSIGNAL));
    EXPECT(0, broken);
    EXPECT(0, sigaction(SIGPIPE, &before, NULL));
}

static long use_all(void)
{
    files();
    channels();
    waits();
    much();
    cancelled();
    nobody_reads();
    return 0;
}

static long open_there(void)
{
    open_all();
    return 0;
}

static long close_there(void)
{
    close_all();
    return 0;
}

int main(int argc, char **argv)
{
    static sem_t made;
    parse(argc, argv, 1, 2);
    signal(SIGPIPE, SIG_IGN);
    at_it = &made;
    EXPECT(0, sem_init(at_it, 0, 0));
    REQUIRE(mkdtemp(folder));
    for (long i = 0; i < iterations; i++) {
        open_all();
        in_new_thread(use_all);
        in_new_thread(close_there);
        in_new_thread(open_there);
        use_all();
        in_new_thread(use_all);
        close_all();
    }
    char path[100];
    snprintf(path, sizeof path, "%s/file", folder);
    EXPECT(0, unlink(path));
    EXPECT(0, rmdir(folder));
    return pass();
}
