/* The lock of a stream is one for all threads, wherever it was opened: calls of others wait. */
#include "../harness.h"

#include <unistd.h>

enum { GROUPS = 50, LINES = 4 };

static FILE *text;
static char path[] = "/tmp/stream_locks.XXXXXX";
static pthread_barrier_t all;
static int failed;

/* A group of lines with nobody else's in between. */
static long writes_groups(int self)
{
    pthread_barrier_wait(&all);
    for (int i = 0; i < GROUPS; i++) {
        flockfile(text);
        for (int line = 0; line < LINES; line++) {
            flockfile(text);
            fprintf(text, "%d %d %d\n", self, i, line);
            funlockfile(text);
        }
        funlockfile(text);
        fprintf(text, "alone %d %d\n", self, i);
    }
    return 0;
}

/* A byte at a time, under one lock for each group. Returns how many groups. */
static long reads_groups(int self)
{
    char line[40];
    long groups = self * 0;
    pthread_barrier_wait(&all);
    for (;;) {
        int writer = -1, number = -1;
        flockfile(text);
        for (int i = 0; i < LINES; i++) {
            int length = 0, byte, is, group, at;
            while ((byte = getc_unlocked(text)) != EOF && byte != '\n')
                line[length++] = (char)byte;
            line[length] = '\0';
            if (byte == EOF) {
                REQUIRE(length == 0 && i == 0);
                funlockfile(text);
                return groups;
            }
            if (line[0] == 'a') {
                i--;
                continue;
            }
            EXPECT(3, sscanf(line, "%d %d %d", &is, &group, &at));
            REQUIRE(i == 0 || (writer == is && number == group));
            EXPECT(i, at);
            writer = is;
            number = group;
        }
        funlockfile(text);
        groups++;
    }
}

static void *tries(void *unused)
{
    failed = ftrylockfile(text);
    if (failed == 0)
        funlockfile(text);
    return unused;
}

/* Whether another thread finds it locked. */
static bool is_locked(void)
{
    pthread_t id;
    EXPECT(0, pthread_create(&id, NULL, tries, NULL));
    EXPECT(0, pthread_join(id, NULL));
    return failed != 0;
}

static long locks(void)
{
    EXPECT(0, ftrylockfile(text));
    flockfile(text);
    EXPECT(true, is_locked());
    funlockfile(text);
    EXPECT(true, is_locked());
    /* One's own calls do not wait. */
    EXPECT(0, ftell(text));
    funlockfile(text);
    EXPECT(false, is_locked());
    return 0;
}

/* The same for standard output, by which every thread prints. */
static long prints_groups(int self)
{
    pthread_barrier_wait(&all);
    for (int i = 0; i < GROUPS; i++) {
        flockfile(stdout);
        for (int line = 0; line < LINES; line++) {
            printf("%d\n", line);
            fflush(stdout);
        }
        funlockfile(stdout);
    }
    return self * 0;
}

/* Ends the program, with the lock. */
static long ends(void)
{
    flockfile(stdout);
    exit(pass());
}

static void prints_at_exit(void)
{
    printf("the end\n");
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    text = fdopen(file, "w+");
    REQUIRE(text);
    in_new_thread(locks);
    EXPECT(0, pthread_barrier_init(&all, NULL, threads));
    run_threads(threads, writes_groups);
    rewind(text);
    EXPECT((long)threads * GROUPS, run_threads(threads, reads_groups));
    EXPECT(0, fclose(text) | unlink(path));
    run_threads(threads, prints_groups);
    EXPECT(0, atexit(prints_at_exit));
    return (int)in_new_thread(ends);
}
