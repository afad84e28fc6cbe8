/* Fortified functions, by which distributions build their programs, and names of functions that older programs have. */
#include "../absent.h"
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);
int __poll_chk(struct pollfd *, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
ssize_t __readlink_chk(const char *, char *, size_t, size_t);
ssize_t __readlinkat_chk(int, const char *, char *, size_t, size_t);
char *__realpath_chk(const char *, char *, size_t);
char *__getcwd_chk(char *, size_t, size_t);
int __gethostname_chk(char *, size_t, size_t);
int __getdomainname_chk(char *, size_t, size_t);
int __getgroups_chk(int, gid_t *, size_t);
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
int __xstat(int, const char *, struct stat *);
int __lxstat(int, const char *, struct stat *);
int __fxstat(int, int, struct stat *);
int __fxstatat(int, int, const char *, struct stat *, int);
int __xstat64(int, const char *, struct stat64 *);
int __lxstat64(int, const char *, struct stat64 *);
int __fxstat64(int, int, struct stat64 *);
int __fxstatat64(int, int, const char *, struct stat64 *, int);
ssize_t __read(int, void *, size_t);
ssize_t __write(int, const void *, size_t);
ssize_t __pread64(int, void *, size_t, off64_t);
off_t __lseek(int, off_t, int);
int __open(const char *, int, ...);
int __close(int);
int __fcntl(int, int, ...);
int __poll(struct pollfd *, nfds_t, int);
int old_lock(pthread_mutex_t *);
int old_unlock(pthread_mutex_t *);
__asm__(".symver old_lock, __pthread_mutex_lock@GLIBC_2.2.5");
__asm__(".symver old_unlock, __pthread_mutex_unlock@GLIBC_2.2.5");

static char folder[] = "/tmp/other_names.XXXXXX";
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long locked;

/* What a job's first thread has opened, and what the second one finds: in the first page and the last. */
struct opened {
    int file, pair[2];
};
#define OPENED ((struct opened *)memory)
#define PATH (memory + PAGE)
#define FOUND (memory + 2 * PAGE)

static void opens(char *memory)
{
    sprintf(PATH, "%s/file", folder);
    OPENED->file = open(PATH, O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(OPENED->file > 2);
    EXPECT(10, write(OPENED->file, "0123456789", 10));
    EXPECT(0, lseek(OPENED->file, 0, SEEK_SET));
    EXPECT(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, OPENED->pair));
    EXPECT(3, send(OPENED->pair[0], "one", 3, 0));
    EXPECT(3, send(OPENED->pair[0], "two", 3, 0));
}

static void closes(char *memory)
{
    EXPECT(0, close(OPENED->file) | close(OPENED->pair[0]) | close(OPENED->pair[1]));
}

static void reads(char *memory)
{
    EXPECT(4, __read_chk(OPENED->file, FOUND, 4, PAGE));
    EXPECT(0, memcmp(FOUND, "0123", 4));
    EXPECT(4, __pread_chk(OPENED->file, FOUND, 4, 2, PAGE));
    EXPECT(0, memcmp(FOUND, "2345", 4));
    EXPECT(4, __pread64_chk(OPENED->file, FOUND, 4, 5, PAGE));
    EXPECT(0, memcmp(FOUND, "5678", 4));
    closes(memory);
}

static void receives(char *memory)
{
    struct pollfd *set = (struct pollfd *)FOUND;
    *set = (struct pollfd){.fd = OPENED->pair[1], .events = POLLIN};
    EXPECT(1, __poll_chk(set, 1, 0, sizeof *set));
    EXPECT(POLLIN, set->revents);
    struct timespec none = {0};
    set->revents = 0;
    EXPECT(1, __ppoll_chk(set, 1, &none, NULL, sizeof *set));
    EXPECT(POLLIN, set->revents);
    EXPECT(3, __recv_chk(OPENED->pair[1], FOUND, PAGE, PAGE, 0));
    EXPECT(0, memcmp(FOUND, "one", 3));
    EXPECT(3, __recvfrom_chk(OPENED->pair[1], FOUND, PAGE, PAGE, 0, NULL, NULL));
    EXPECT(0, memcmp(FOUND, "two", 3));
    closes(memory);
}

static void paths(char *memory)
{
    int files[] = {__open_2(PATH, O_RDONLY), __open64_2(PATH, O_RDONLY), __openat_2(AT_FDCWD, PATH, O_RDONLY),
                   __openat64_2(AT_FDCWD, PATH, O_RDONLY), __open(PATH, O_RDONLY)};
    for (int i = 0; i < 5; i++) {
        REQUIRE(files[i] > 2);
        EXPECT(0, close(files[i]));
    }
    closes(memory);
}

static void links(char *memory)
{
    sprintf(PATH, "%s/link", folder);
    EXPECT(0, symlink("file", PATH));
}

static void follows(char *memory)
{
    EXPECT(4, __readlink_chk(PATH, FOUND, PAGE, PAGE));
    EXPECT(0, memcmp(FOUND, "file", 4));
    EXPECT(4, __readlinkat_chk(AT_FDCWD, PATH, FOUND, PAGE, PAGE));
    REQUIRE(__realpath_chk(PATH, FOUND, PATH_MAX) == FOUND);
    EXPECT(0, strcmp(strrchr(FOUND, '/'), "/file"));
    EXPECT(0, unlink(PATH));
}

static void names(char *memory)
{
    REQUIRE(__getcwd_chk(FOUND, PAGE, PAGE) == FOUND);
    EXPECT('/', FOUND[0]);
    EXPECT(0, __gethostname_chk(FOUND, PAGE, PAGE));
    EXPECT(0, __getdomainname_chk(FOUND, 65, PAGE));
    REQUIRE(__getgroups_chk(PAGE / sizeof(gid_t), (gid_t *)FOUND, PAGE) >= 0);
}

static void versions(char *memory)
{
    struct stat *found = (struct stat *)FOUND;
    struct stat64 *large = (struct stat64 *)FOUND;
    EXPECT(0, __fxstat(1, OPENED->file, found));
    EXPECT(10, found->st_size);
    EXPECT(0, __fxstat64(1, OPENED->file, large) | __xstat64(1, PATH, large) | __lxstat64(1, PATH, large));
    EXPECT(10, large->st_size);
    EXPECT(0, __xstat(1, PATH, found) | __lxstat(1, PATH, found));
    EXPECT(0, __fxstatat(1, AT_FDCWD, PATH, found, 0) | __fxstatat64(1, AT_FDCWD, PATH, large, 0));
    EXPECT(-1, __fxstat(2, OPENED->file, found));
    EXPECT(EINVAL, errno);
    closes(memory);
}

static void older(char *memory)
{
    EXPECT(2, __lseek(OPENED->file, 2, SEEK_SET));
    EXPECT(2, __read(OPENED->file, FOUND, 2));
    EXPECT(0, memcmp(FOUND, "23", 2));
    EXPECT(3, __pread64(OPENED->file, FOUND, 3, 7));
    EXPECT(1, __write(OPENED->file, FOUND, 1));
    EXPECT(O_RDWR, __fcntl(OPENED->file, F_GETFL) & O_ACCMODE);
    struct pollfd *set = (struct pollfd *)FOUND;
    *set = (struct pollfd){.fd = OPENED->pair[1], .events = POLLIN};
    EXPECT(1, __poll(set, 1, 0));
    EXPECT(0, __close(OPENED->file) | __close(OPENED->pair[0]) | __close(OPENED->pair[1]));
}

static void locks(char *memory)
{
    (void)memory;
    for (int i = 0; i < 100; i++) {
        EXPECT(0, old_lock(&mutex));
        locked++;
        EXPECT(0, old_unlock(&mutex));
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    REQUIRE(mkdtemp(folder));
    static const struct job all[] = {
        {"read", opens, reads},   {"receive", opens, receives}, {"open", opens, paths},  {"link", links, follows},
        {"names", NULL, names},   {"stat", opens, versions},    {"older", opens, older}, {"lock", locks, locks},
    };
    int result = run_jobs(all, sizeof all / sizeof *all);
    EXPECT(200L * threads, locked);
    char path[64];
    sprintf(path, "%s/file", folder);
    EXPECT(0, unlink(path) | rmdir(folder));
    return result;
}
