/* Hand-off chains: a mutex and a turn go round a ring; each holder extends a list that the next one checks. */
#include "../harness.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed[MAX_THREADS];
static long turn;
static uint64_t *log_entries;

static uint64_t mix(uint64_t previous, int self)
{
    return (previous ^ (uint64_t)self) * 0x9e3779b97f4a7c15u + 1;
}

static long work(int self)
{
    long violations = 0;
    for (long round = 0; round < iterations; round++) {
        pthread_mutex_lock(&mutex);
        while (turn % threads != self)
            pthread_cond_wait(&changed[self], &mutex);
        if (turn > 0) {
            uint64_t before = turn > 1 ? log_entries[turn - 2] : 0;
            violations += log_entries[turn - 1] != mix(before, (int)((turn - 1) % threads));
        }
        log_entries[turn] = mix(turn > 0 ? log_entries[turn - 1] : 0, self);
        turn++;
        pthread_cond_signal(&changed[turn % threads]);
        pthread_mutex_unlock(&mutex);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 300);
    log_entries = calloc((size_t)(threads * iterations), sizeof *log_entries);
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_cond_init(&changed[i], NULL));
    long violations = run_threads(threads, work);
    uint64_t last = 0;
    for (long i = 0; i < threads * iterations; i++) {
        last = mix(last, (int)(i % threads));
        REQUIRE(log_entries[i] == last);
    }
    return verdict(violations, "the chain was broken");
}
