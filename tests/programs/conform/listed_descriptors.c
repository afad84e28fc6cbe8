/* A program that looks into /proc/self/fd finds what it has open, and nothing else, in any thread. */
#include "../harness.h"
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum { THREADS = 4 };

static pthread_barrier_t barrier;
static int opened[THREADS];

/* How many entries a folder has, and whether a number is among them. */
static int count(const char *path, int number)
{
    DIR *folder = opendir(path);
    REQUIRE(folder);
    int entries = 0, found = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.') {
            entries++;
            found |= atoi(entry->d_name) == number;
        }
    EXPECT(0, closedir(folder));
    REQUIRE(found);
    return entries;
}

static long look(int self)
{
    opened[self] = open("/dev/null", O_RDONLY);
    pthread_barrier_wait(&barrier);
    if (self == 0) {
        char path[32];
        snprintf(path, sizeof path, "/proc/%d/fd/", (int)getpid());
        for (int i = 0; i < THREADS; i++) {
            EXPECT(3 + THREADS + 1, count("/proc/self/fd", opened[i]));
            EXPECT(3 + THREADS + 1, count("/dev/fd", opened[i]));
        }
        REQUIRE(count(path, opened[0]) > THREADS);
    }
    pthread_barrier_wait(&barrier);
    close(opened[self]);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    /* Whatever else it was started with. */
    for (int number = 3; number < 256; number++)
        close(number);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, THREADS));
    run_threads(THREADS, look);
    EXPECT(4, count("/proc/self/fd", 2));
    return pass();
}
