/* Calls that take a path or fill in what they find at it. */
#include "../absent.h"
#include <dirent.h>
#include <fcntl.h>
#include <mntent.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

static char folder[] = "/tmp/absent.XXXXXX";

/* Paths lie one per page; what is found goes to the last page. */
#define ONE memory
#define TWO (memory + PAGE)
#define THREE (memory + 2 * PAGE)
#define FOUND (memory + 3 * PAGE)

static void one_file(char *memory)
{
    sprintf(ONE, "%s/one", folder);
    sprintf(TWO, "%s/two", folder);
    sprintf(THREE, "user.three");
    strcpy(FOUND, "value");
}

static void makes_file(char *memory)
{
    int fd = open(ONE, O_CREAT | O_EXCL | O_RDWR, 0600);
    REQUIRE(fd > 0);
    EXPECT(0, close(fd));
}

static void renames(char *memory)
{
    EXPECT(0, rename(ONE, TWO));
}

static void back(char *memory)
{
    EXPECT(0, renameat(AT_FDCWD, TWO, AT_FDCWD, ONE));
}

static void links(char *memory)
{
    EXPECT(0, link(ONE, TWO));
    EXPECT(0, unlink(TWO));
    EXPECT(0, linkat(AT_FDCWD, ONE, AT_FDCWD, TWO, 0));
}

static void unlinks(char *memory)
{
    EXPECT(0, unlinkat(AT_FDCWD, TWO, 0));
}

static void soft(char *memory)
{
    EXPECT(0, symlinkat(ONE, AT_FDCWD, TWO));
}

static void reads_link(char *memory)
{
    EXPECT(strlen(folder) + 4, readlink(TWO, FOUND, PAGE));
    EXPECT(0, unlink(TWO));
}

static void permissions(char *memory)
{
    EXPECT(0, access(ONE, R_OK) | eaccess(ONE, R_OK) | faccessat(AT_FDCWD, ONE, R_OK, 0));
}

static void mode(char *memory)
{
    EXPECT(0, fchmodat(AT_FDCWD, ONE, 0640, 0));
}

static void owner(char *memory)
{
    EXPECT(0, lchown(ONE, getuid(), getgid()));
}

static void owner_at(char *memory)
{
    EXPECT(0, fchownat(AT_FDCWD, ONE, getuid(), getgid(), 0));
}

static void times_before(char *memory)
{
    one_file(memory);
    ((struct timespec *)FOUND)[0].tv_sec = ((struct timespec *)FOUND)[1].tv_sec = 1000;
    ((struct timespec *)FOUND)[0].tv_nsec = ((struct timespec *)FOUND)[1].tv_nsec = 0;
}

static void times_at(char *memory)
{
    EXPECT(0, utimensat(AT_FDCWD, ONE, (struct timespec *)FOUND, 0));
}

static void times_of(char *memory)
{
    EXPECT(0, utimes(ONE, (struct timeval *)FOUND));
}

static void times_both(char *memory)
{
    EXPECT(0, utime(ONE, (struct utimbuf *)FOUND));
}

static void finds(char *memory)
{
    EXPECT(0, stat(ONE, (struct stat *)FOUND));
    REQUIRE(S_ISREG(((struct stat *)FOUND)->st_mode));
}

static void finds_at(char *memory)
{
    EXPECT(0, fstatat(AT_FDCWD, ONE, (struct stat *)FOUND, 0));
    REQUIRE(S_ISREG(((struct stat *)FOUND)->st_mode));
}

static void finds_more(char *memory)
{
    EXPECT(0, statx(AT_FDCWD, ONE, 0, STATX_BASIC_STATS, (struct statx *)FOUND));
    REQUIRE(S_ISREG(((struct statx *)FOUND)->stx_mode));
}

static void system_of(char *memory)
{
    EXPECT(0, statfs(ONE, (struct statfs *)FOUND));
    REQUIRE(((struct statfs *)FOUND)->f_bsize > 0);
}

static void system_also(char *memory)
{
    EXPECT(0, statvfs(ONE, (struct statvfs *)FOUND));
    REQUIRE(((struct statvfs *)FOUND)->f_bsize > 0);
}

static void configured(char *memory)
{
    REACHES(pathconf(ONE, _PC_LINK_MAX));
}

static void attributes(char *memory)
{
    REACHES(setxattr(ONE, THREE, FOUND, 5, 0));
}

static void attribute(char *memory)
{
    REACHES(getxattr(ONE, THREE, FOUND, PAGE));
}

static void attribute_list(char *memory)
{
    REACHES(listxattr(ONE, FOUND, PAGE));
}

static void no_attribute(char *memory)
{
    REACHES(removexattr(ONE, THREE));
}

static void template(char *memory)
{
    sprintf(ONE, "%s/XXXXXX", folder);
}

static void makes_folder(char *memory)
{
    REQUIRE(mkdtemp(ONE) == ONE);
    EXPECT(0, rmdir(ONE));
}

static void makes_temporary(char *memory)
{
    int fd = mkostemp(ONE, O_CLOEXEC);
    REQUIRE(fd > 0);
    EXPECT(0, close(fd));
    EXPECT(0, remove(ONE));
}

static void pipe_at(char *memory)
{
    EXPECT(0, mkfifoat(AT_FDCWD, TWO, 0600));
    EXPECT(0, unlink(TWO));
}

static void lists(char *memory)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY);
    REQUIRE(getdents64(fd, FOUND, PAGE) > 0);
    EXPECT(0, close(fd));
}

static void watches(char *memory)
{
    int fd = inotify_init();
    REQUIRE(inotify_add_watch(fd, ONE, IN_ATTRIB) >= 0);
    EXPECT(0, chmod(ONE, 0600));
    REQUIRE(read(fd, FOUND, PAGE) > 0);
    EXPECT(0, close(fd));
}

static void in_memory(char *memory)
{
    int fd = memfd_create(THREE, 0);
    REQUIRE(fd > 0);
    EXPECT(0, close(fd));
}

static void opens_stream(char *memory)
{
    FILE *file = fopen(ONE, "w");
    REQUIRE(file);
    EXPECT(5, fwrite(FOUND, 1, 5, file));
    EXPECT(0, fclose(file));
}

static void shortens(char *memory)
{
    EXPECT(0, truncate(ONE, 3));
}

static void goes_there(char *memory)
{
    REACHES(chdir(TWO));
}

static void where(char *memory)
{
    REQUIRE(getcwd(FOUND, PAGE) == FOUND);
}

static void really(char *memory)
{
    REQUIRE(realpath(ONE, FOUND) == FOUND);
    EXPECT(0, unlink(ONE));
}

static const struct job all[] = {
    {"open", one_file, makes_file},       {"rename", one_file, renames},         {"renameat", one_file, back},
    {"link", one_file, links},            {"unlinkat", one_file, unlinks},       {"symlinkat", one_file, soft},
    {"readlink", one_file, reads_link},   {"access", one_file, permissions},     {"fchmodat", one_file, mode},
    {"lchown", one_file, owner},          {"fchownat", one_file, owner_at},      {"utimensat", times_before, times_at},
    {"utimes", times_before, times_of},   {"utime", times_before, times_both},   {"stat", one_file, finds},
    {"fstatat", one_file, finds_at},      {"statx", one_file, finds_more},       {"statfs", one_file, system_of},
    {"statvfs", one_file, system_also},   {"pathconf", one_file, configured},    {"setxattr", one_file, attributes},
    {"getxattr", one_file, attribute},    {"listxattr", one_file, attribute_list}, {"removexattr", one_file, no_attribute},
    {"mkdtemp", template, makes_folder},  {"mkostemp", template, makes_temporary}, {"mkfifoat", one_file, pipe_at},
    {"getdents64", one_file, lists},      {"inotify", one_file, watches},        {"memfd_create", one_file, in_memory},
    {"fopen", one_file, opens_stream},    {"truncate", one_file, shortens},      {"chdir", one_file, goes_there},
    {"getcwd", one_file, where},          {"realpath", one_file, really},
};

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 1);
    REQUIRE(mkdtemp(folder));
    int result = run_jobs(all, sizeof all / sizeof *all);
    EXPECT(0, rmdir(folder));
    return result;
}
