/* A file that is mapped to be read, by a descriptor that can only be read, and written by another one. Mappings that cannot be fail as natively. */
#include "../harness.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static const volatile long *mapped;
static pthread_barrier_t barrier;

static long look(int self)
{
    long violations = 0;
    (void)self;
    for (long i = 1; i <= iterations; i++) {
        pthread_barrier_wait(&barrier);
        violations += mapped[0] != i || mapped[PAGE / sizeof(long)] != -i;
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

static void *write_each(void *descriptor)
{
    int file = (int)(intptr_t)descriptor;
    for (long i = 1; i <= iterations; i++) {
        long negative = -i;
        EXPECT(sizeof i, pwrite(file, &i, sizeof i, 0));
        EXPECT(sizeof i, pwrite(file, &negative, sizeof i, PAGE));
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void refused(int error, void *at, size_t length, int flags, int file)
{
    errno = 0;
    EXPECT(1, mmap(at, length, PROT_READ, flags, file, 0) == MAP_FAILED);
    EXPECT(error, errno);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 20);
    char name[] = "mapped-XXXXXX";
    int file = mkstemp(name);
    REQUIRE(file >= 0);
    EXPECT(0, ftruncate(file, 2 * PAGE));
    int other = open(name, O_RDONLY);
    REQUIRE(other >= 0);
    int only_written = open(name, O_WRONLY);
    int folder = open(".", O_RDONLY);
    EXPECT(0, unlink(name));
    refused(EACCES, NULL, PAGE, MAP_PRIVATE, only_written);
    refused(ENODEV, NULL, PAGE, MAP_PRIVATE, folder);
    refused(EBADF, NULL, PAGE, MAP_SHARED, -1);
    refused(EINVAL, NULL, 0, MAP_PRIVATE, other);
    refused(EINVAL, NULL, PAGE, 0, other);
    refused(ENOMEM, NULL, (size_t)-PAGE, MAP_PRIVATE, other);
    mapped = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, other, 0);
    REQUIRE(mapped != MAP_FAILED);
    refused(EINVAL, (char *)mapped + 8, PAGE, MAP_PRIVATE | MAP_FIXED, other);
    EXPECT(0, close(other));
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1));
    pthread_t writer;
    EXPECT(0, pthread_create(&writer, NULL, write_each, (void *)(intptr_t)file));
    long violations = run_threads(threads, look);
    EXPECT(0, pthread_join(writer, NULL));
    return verdict(violations, "what was written was not seen");
}
