/* A reader-writer lock: readers see the record complete, and never go back in time. */
#include "../harness.h"

enum { WORDS = 1100 }; /* more than two pages */
static long record[WORDS];
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static long work(int self)
{
    long violations = 0, latest = 0;
    for (long round = 0; round < iterations; round++) {
        if ((round + self) % 4 == 0) {
            pthread_rwlock_wrlock(&lock);
            for (int i = 0; i < WORDS; i++)
                record[i]++;
            pthread_rwlock_unlock(&lock);
        } else {
            pthread_rwlock_rdlock(&lock);
            for (int i = 1; i < WORDS; i++)
                violations += record[i] != record[0];
            violations += record[0] < latest;
            latest = record[0];
            pthread_rwlock_unlock(&lock);
        }
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 200);
    long violations = run_threads(threads, work), writes = 0;
    for (int self = 0; self < threads; self++)
        for (long round = 0; round < iterations; round++)
            writes += (round + self) % 4 == 0;
    EXPECT(writes, record[0]);
    return verdict(violations, "a reader saw half a record or went back");
}
