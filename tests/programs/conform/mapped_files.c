/* Shared mappings of files: every thread sees what any thread, or a system call, has written, in each mapping of the file; they are
 * protected, resized and removed by any thread. */
#include "../harness.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

enum { PAGES = 3, WORDS = PAGES * PAGE / (int)sizeof(long) };

static pthread_barrier_t barrier;
static int file;
static long *shared, *again, *grown, *of_thread[MAX_THREADS];
static pthread_mutex_t *mutex;

static void *map(int fd, size_t length, int protection)
{
    void *p = mmap(NULL, length, protection, MAP_SHARED, fd, 0);
    REQUIRE(p != MAP_FAILED);
    return p;
}

static int regular(void)
{
    char name[] = "mapped-XXXXXX";
    int fd = mkstemp(name);
    REQUIRE(fd >= 0);
    EXPECT(0, unlink(name));
    return fd;
}

static int posix(void)
{
    char name[64];
    snprintf(name, sizeof name, "/mapped-files-%d", (int)getpid());
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    REQUIRE(fd >= 0);
    EXPECT(0, shm_unlink(name));
    return fd;
}

/* What one thread writes, the next one reads, in both mappings; main's descriptor has it too. */
static long write_and_read(int self)
{
    long wrong = 0;
    for (long i = 1; i <= iterations; i++) {
        for (int word = 1 + self; word < WORDS; word += threads)
            shared[word] = i * WORDS + word;
        __atomic_fetch_add(&shared[0], self + 1, __ATOMIC_SEQ_CST);
        pthread_barrier_wait(&barrier);
        for (int word = 1 + (self + 1) % threads; word < WORDS; word += threads)
            wrong += shared[word] != i * WORDS + word || again[word] != i * WORDS + word;
        wrong += again[0] != i * threads * (threads + 1) / 2;
        EXPECT(0, msync(shared, PAGES * PAGE, self % 2 ? MS_SYNC : MS_ASYNC));
        pthread_barrier_wait(&barrier);
    }
    return wrong;
}

/* Single bytes, and words over the edge of two pages. */
static long pieces(int self)
{
    unsigned char *bytes = (unsigned char *)shared;
    memset(bytes + self * 100, self + 1, 100);
    uint16_t half = (uint16_t)(self + 1);
    memcpy(bytes + (1 + self % (PAGES - 1)) * PAGE - 1 - self / (PAGES - 1) * 2, &half, self < PAGES - 1 ? 2 : 0);
    pthread_barrier_wait(&barrier);
    long wrong = 0;
    int next = (self + 1) % threads;
    for (int i = 0; i < 100; i++)
        wrong += bytes[next * 100 + i] != next + 1;
    if (next < PAGES - 1) {
        memcpy(&half, bytes + (1 + next) * PAGE - 1, 2);
        wrong += half != next + 1;
    }
    char copy[100];
    memcpy(copy, bytes + next * 100, 100);
    wrong += memcmp(copy, (unsigned char *)again + next * 100, 100) != 0;
    return wrong;
}

/* A mutex in the file keeps a plain counter beside it right. */
static long count(int self)
{
    (void)self;
    long *counter = &shared[WORDS / 2];
    for (long i = 0; i < iterations; i++) {
        EXPECT(0, pthread_mutex_lock(mutex));
        ++*counter;
        EXPECT(0, pthread_mutex_unlock(mutex));
    }
    return 0;
}

/* Each thread makes a file and maps it; the next one uses, protects and removes it. */
static long mappings_of_threads(int self)
{
    long wrong = 0;
    int fd = memfd_create("of-thread", 0);
    REQUIRE(fd >= 0);
    EXPECT(0, ftruncate(fd, 3 * PAGE));
    of_thread[self] = map(fd, 3 * PAGE, PROT_READ | PROT_WRITE);
    of_thread[self][7] = self;
    pthread_barrier_wait(&barrier);
    int next = (self + 1) % threads;
    long *other = of_thread[next];
    wrong += other[7] != next;
    other[8] = self;
    pthread_barrier_wait(&barrier);
    wrong += of_thread[self][8] != (self + threads - 1) % threads;
    pthread_barrier_wait(&barrier);
    EXPECT(0, mprotect(other, 3 * PAGE, PROT_READ));
    wrong += other[7] != next;
    EXPECT(0, mprotect(other, PAGE, PROT_READ | PROT_WRITE));
    other[9] = 5;
    EXPECT(0, munmap((char *)other + PAGE, PAGE));
    other[PAGE / 4 - 1 - PAGE / 8] += 1;
    pthread_barrier_wait(&barrier);
    long got = 0;
    EXPECT(sizeof got, pread(fd, &got, sizeof got, 9 * sizeof(long)));
    wrong += got != 5;
    EXPECT(0, munmap(other, PAGE));
    EXPECT(0, munmap((char *)other + 2 * PAGE, PAGE));
    EXPECT(0, close(fd));
    return wrong;
}

/* The same with segments of System V shared memory. */
static long segments_of_threads(int self)
{
    long wrong = 0;
    int segment = shmget(IPC_PRIVATE, 3 * PAGE - 100, IPC_CREAT | 0600);
    REQUIRE(segment >= 0);
    of_thread[self] = shmat(segment, NULL, 0);
    REQUIRE((void *)of_thread[self] != (void *)-1);
    const long *seen = shmat(segment, NULL, SHM_RDONLY);
    REQUIRE((void *)seen != (void *)-1);
    EXPECT(0, shmctl(segment, IPC_RMID, NULL));
    pthread_barrier_wait(&barrier);
    long *other = of_thread[(self + 1) % threads];
    __atomic_fetch_add(&other[1000], self + 1, __ATOMIC_SEQ_CST);
    pthread_barrier_wait(&barrier);
    wrong += seen[1000] != (self + threads - 1) % threads + 1;
    EXPECT(0, shmdt(other));
    EXPECT(0, shmdt(seen));
    EXPECT(-1, shmdt(seen));
    return wrong;
}

static long read_grown(int self)
{
    long wrong = grown[0] != shared[0];
    wrong += grown[2 * WORDS - 1 - self] != 0;
    pthread_barrier_wait(&barrier);
    grown[2 * WORDS - 1 - self] = self;
    pthread_barrier_wait(&barrier);
    int next = (self + 1) % threads;
    return wrong + (grown[2 * WORDS - 1 - next] != next);
}

static long try(int (*make)(void))
{
    file = make();
    EXPECT(0, ftruncate(file, PAGES * PAGE));
    shared = map(file, PAGES * PAGE, PROT_READ | PROT_WRITE);
    again = map(file, PAGES * PAGE, PROT_READ);
    long wrong = run_threads(threads, write_and_read);
    long word = 0;
    EXPECT(sizeof word, pread(file, &word, sizeof word, 9 * sizeof word));
    wrong += word != iterations * WORDS + 9;
    word = 77;
    EXPECT(sizeof word, pwrite(file, &word, sizeof word, 9 * sizeof word));
    wrong += shared[9] != 77 || again[9] != 77;
    wrong += run_threads(threads, pieces);
    memset(shared, 0, PAGES * PAGE);
    mutex = (pthread_mutex_t *)&shared[WORDS / 2 + 8];
    EXPECT(0, pthread_mutex_init(mutex, NULL));
    run_threads(threads, count);
    wrong += shared[WORDS / 2] != threads * iterations;
    EXPECT(0, ftruncate(file, 2 * PAGES * PAGE));
    grown = mremap(again, PAGES * PAGE, 2 * PAGES * PAGE, MREMAP_MAYMOVE);
    REQUIRE(grown != MAP_FAILED);
    EXPECT(0, mprotect(grown, 2 * PAGES * PAGE, PROT_READ | PROT_WRITE));
    wrong += run_threads(threads, read_grown);
    EXPECT(0, munmap(shared, PAGES * PAGE));
    EXPECT(0, munmap(grown, 2 * PAGES * PAGE));
    EXPECT(0, close(file));
    return wrong;
}

static int memory(void)
{
    return memfd_create("mapped", 0);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 4);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    long wrong = try(regular) + try(posix) + try(memory);
    wrong += run_threads(threads, mappings_of_threads);
    wrong += run_threads(threads, segments_of_threads);
    return verdict(wrong, "a mapped file was not common");
}
