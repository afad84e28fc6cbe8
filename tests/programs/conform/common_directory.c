/* The current directory and the mask of new files are one for all threads, wherever they run. */
#include "../harness.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_barrier_t all;
static char root[128];
static const char *const masks[] = {"022", "077", "002", "027"};

static long mode_of(const char *path)
{
    struct stat status;
    EXPECT(0, stat(path, &status));
    return status.st_mode & 0777;
}

static void touch(const char *path)
{
    int file = open(path, O_CREAT | O_WRONLY | O_EXCL, 0666);
    if (file < 0)
        fail("%s: %s", path, strerror(errno));
    EXPECT(0, close(file));
}

/* Each thread in turn goes elsewhere, and all look where they are. */
static long turns(int self)
{
    long wrong = 0;
    for (int turn = 0; turn < threads; turn++) {
        char name[32], expected[256], found[256], file[64];
        mode_t mask = strtol(masks[turn % 4], NULL, 8);
        snprintf(name, sizeof name, "turn-%d", turn);
        if (self == turn) {
            EXPECT(0, mkdir(name, 0777));
            if (turn % 2) {
                EXPECT(0, chdir(name));
            } else {
                int folder = open(name, O_RDONLY | O_DIRECTORY);
                EXPECT(0, fchdir(folder));
                EXPECT(0, close(folder));
            }
            EXPECT(turn == 0 ? 0 : strtol(masks[(turn + 3) % 4], NULL, 8), umask(mask));
            EXPECT(-1, chdir("there is no such folder"));
            EXPECT(ENOENT, errno);
        }
        pthread_barrier_wait(&all);
        snprintf(expected, sizeof expected, "%s/%s", root, name);
        wrong += getcwd(found, sizeof found) == NULL || strcmp(found, expected) != 0;
        snprintf(file, sizeof file, "file-%d", self);
        touch(file);
        wrong += mode_of(file) != (0666 & ~mask);
        wrong += unlink(file) != 0;
        pthread_barrier_wait(&all);
        if (self == (turn + 1) % threads) {
            EXPECT(0, chdir(".."));
            EXPECT(0, rmdir(name));
        }
        pthread_barrier_wait(&all);
    }
    return wrong;
}

/* All go at once; in the end they are all in the same place. */
static long at_once(int self)
{
    char name[300];
    for (int i = 0; i < iterations; i++) {
        snprintf(name, sizeof name, "%s/%d", root, (self + i) % 3);
        EXPECT(0, chdir(name));
        umask(022 + self % 5);
    }
    return 0;
}

static char places[MAX_THREADS][256];
static mode_t final[MAX_THREADS];

static long where(int self)
{
    char file[64];
    EXPECT(1, getcwd(places[self], sizeof places[self]) != NULL);
    snprintf(file, sizeof file, "file-%d", self);
    touch(file);
    final[self] = mode_of(file);
    return unlink(file);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 50);
    EXPECT(0, pthread_barrier_init(&all, NULL, threads));
    strcpy(root, "/tmp/gondwana-directory-XXXXXX");
    EXPECT(1, mkdtemp(root) != NULL);
    EXPECT(0, chdir(root));
    umask(0);
    EXPECT(0, run_threads(threads, turns));
    EXPECT(0, mkdir("0", 0777) | mkdir("1", 0777) | mkdir("2", 0777));
    EXPECT(0, run_threads(threads, at_once));
    EXPECT(0, run_threads(threads, where));
    for (int i = 0; i < threads; i++) {
        EXPECT(0, strcmp(places[0], places[i]));
        EXPECT(final[0], final[i]);
    }
    EXPECT(0, chdir(root));
    EXPECT(0, rmdir("0") | rmdir("1") | rmdir("2"));
    EXPECT(0, rmdir(root));
    return pass();
}
