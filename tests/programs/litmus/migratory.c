/* Migratory data: a record of several pages that is changed under one mutex by every thread in turn. */
#include "../harness.h"

enum { WORDS = 3 * PAGE / sizeof(long) };
static long *record;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static long work(int self)
{
    (void)self;
    long violations = 0;
    for (long round = 0; round < iterations; round++) {
        pthread_mutex_lock(&mutex);
        long first = record[0];
        for (int i = 0; i < WORDS; i += 97)
            violations += record[i] != first;
        for (int i = 0; i < WORDS; i += 97)
            record[i]++;
        pthread_mutex_unlock(&mutex);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 300);
    record = calloc(WORDS, sizeof *record);
    long violations = run_threads(threads, work);
    for (int i = 0; i < WORDS; i++)
        EXPECT(i % 97 == 0 ? threads * iterations : 0, record[i]);
    return verdict(violations, "an update was lost");
}
