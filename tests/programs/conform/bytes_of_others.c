/* Threads read a stream byte by byte, in turn and at once: what is read ahead for one is there for all others. */
#include "../harness.h"

#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 40000 };

static FILE *text;
static char path[] = "/tmp/bytes_of_others.XXXXXX";
static long next;
static pthread_barrier_t all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int byte_at(long at)
{
    return (int)(at * 31 + at / 251) & 0xff;
}

static void expect_bytes(int count, int (*get)(FILE *))
{
    for (int i = 0; i < count; i++)
        EXPECT(byte_at(next++), get(text));
}

static long reads_bytes(void)
{
    expect_bytes(100, getc);
    EXPECT(byte_at(next - 1), ungetc(byte_at(next - 1), text));
    next--;
    expect_bytes(100, fgetc);
    expect_bytes(100, getc_unlocked);
    EXPECT(0, feof(text) | ferror(text));
    return 0;
}

/* In the middle of what was read ahead, and beyond it. */
static long reads_blocks(void)
{
    char block[9000];
    expect_bytes(5, getc);
    for (int size = 1; size <= 9000; size *= 30) {
        EXPECT(size, fread(block, 1, size, text));
        for (int i = 0; i < size; i++)
            EXPECT((char)byte_at(next++), block[i]);
        expect_bytes(5, getc_unlocked);
    }
    return 0;
}

static long puts_back(void)
{
    expect_bytes(10, getc);
    EXPECT('?', ungetc('?', text));
    EXPECT(next - 1, ftell(text));
    EXPECT('?', getc(text));
    expect_bytes(10, getc);
    EXPECT(next, ftell(text));
    return 0;
}

static long moves(void)
{
    expect_bytes(3, getc);
    EXPECT(0, fseek(text, 7, SEEK_CUR));
    next += 7;
    expect_bytes(50, getc);
    return 0;
}

/* A child reads on from where its parent is. */
static long forks(void)
{
    expect_bytes(20, getc);
    return 0;
}

static void *takes_turns(void *self)
{
    int (*get[3])(FILE *) = { getc, fgetc, getc_unlocked };
    for (int i = 0; i < 60; i++) {
        pthread_mutex_lock(&lock);
        expect_bytes(7, get[(i + (long)self) % 3]);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static long sums(int self)
{
    long sum = self * 0;
    pthread_barrier_wait(&all);
    for (int byte; (byte = getc(text)) != EOF;)
        sum += byte + 1;
    REQUIRE(feof(text) && getc(text) == EOF);
    return sum;
}

static long reads_to_end(void)
{
    expect_bytes((int)(BYTES - next), getc);
    EXPECT(EOF, getc_unlocked(text));
    REQUIRE(feof(text) && feof_unlocked(text));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    text = fdopen(file, "w+");
    REQUIRE(text);
    for (long i = 0; i < BYTES; i++)
        putc(byte_at(i), text);
    rewind(text);

    long (*works[])(void) = { reads_bytes, reads_blocks, puts_back, moves, reads_bytes };
    for (int i = 0; i < 15; i++) {
        in_new_thread(works[i % 5]);
        /* Every other time the opener, too. */
        if (i & 1)
            works[i / 2 % 5]();
    }
    in_new_thread(forks);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 10; i++)
            if (getc(text) != byte_at(next + i))
                _exit(1);
        _exit(0);
    }
    int status;
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
    pthread_t team[MAX_THREADS];
    for (long i = 0; i < threads; i++)
        EXPECT(0, pthread_create(&team[i], NULL, takes_turns, (void *)i));
    takes_turns(NULL);
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_join(team[i], NULL));

    in_new_thread(reads_to_end);
    rewind(text);
    long sum = 0;
    for (long i = 0; i < BYTES; i++)
        sum += byte_at(i) + 1;
    EXPECT(0, pthread_barrier_init(&all, NULL, threads));
    EXPECT(sum, run_threads(threads, sums));
    EXPECT(0, fclose(text) | unlink(path));
    return pass();
}
