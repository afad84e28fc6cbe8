/* pthread spin locks as the only synchronisation: pairs of counters in different pages stay equal. */
#include "../harness.h"

static pthread_spinlock_t lock;
static struct {
    long word;
    char pad[PAGE - sizeof(long)];
} pair[2];

static long work(int self)
{
    (void)self;
    long violations = 0;
    for (long round = 0; round < iterations; round++) {
        pthread_spin_lock(&lock);
        violations += pair[0].word != pair[1].word;
        pair[0].word++;
        pair[1].word++;
        pthread_spin_unlock(&lock);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 300);
    EXPECT(0, pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE));
    long violations = run_threads(threads, work);
    EXPECT(threads * iterations, pair[0].word);
    return verdict(violations, "the two counters differ inside the lock");
}
