/* Barriers whose threads change: by turns among more threads than the count, by sets that differ from one meeting to
 * the next, and barriers initialised again with another count as soon as one thread has left. */
#include "../harness.h"

static pthread_barrier_t turns, changing, again;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long tickets, serial;
static long written[MAX_THREADS];
static long rounds_done;

/* Twice as many threads as the barrier's count: whoever comes next completes it. The tickets are a multiple of the
 * count, so nobody is left alone. */
static long take_turns(int self)
{
    (void)self;
    for (int result = 0;;) {
        pthread_mutex_lock(&mutex);
        serial += result == PTHREAD_BARRIER_SERIAL_THREAD;
        bool more = tickets > 0;
        tickets -= more;
        pthread_mutex_unlock(&mutex);
        if (!more)
            return 0;
        result = pthread_barrier_wait(&turns);
    }
}

/* In each round a window of the threads meets, which then moves on by one; the others wait for the round to end. */
static long meet_in_windows(int self)
{
    long violations = 0;
    int window = threads / 2 + 1;
    for (long round = 0; round < iterations; round++) {
        long place = (self + threads - round % threads) % threads;
        if (place < window) {
            written[self] = round + 1;
            pthread_barrier_wait(&changing);
            for (int i = 0; i < window; i++)
                violations += written[(round + i) % threads] != round + 1;
        }
        pthread_barrier_wait(&again);
    }
    return violations;
}

/* Meetings of all, of all but one, ... of two, each at the same address; thread 0 initialises, and the others learn
 * of it by a meeting at another barrier. */
static long shrink(int self)
{
    long violations = 0;
    for (int count = threads; count >= 2; count--) {
        if (self < count) {
            written[self] = -count;
            pthread_barrier_wait(&changing);
            for (int i = 0; i < count; i++)
                violations += written[i] != -count;
        }
        if (self == 0) {
            EXPECT(0, pthread_barrier_destroy(&changing));
            if (count > 2)
                EXPECT(0, pthread_barrier_init(&changing, NULL, (unsigned)count - 1));
            rounds_done = count;
        }
        pthread_barrier_wait(&again);
        violations += rounds_done != count;
        pthread_barrier_wait(&again);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 6, 50);
    threads = threads < 2 ? 2 : threads & ~1;
    EXPECT(0, pthread_barrier_init(&turns, NULL, (unsigned)threads / 2));
    EXPECT(0, pthread_barrier_init(&changing, NULL, (unsigned)threads / 2 + 1));
    EXPECT(0, pthread_barrier_init(&again, NULL, (unsigned)threads));
    tickets = iterations * (threads / 2);
    EXPECT(0, run_threads(threads, take_turns));
    EXPECT(iterations, serial);
    EXPECT(0, run_threads(threads, meet_in_windows));
    EXPECT(0, pthread_barrier_destroy(&changing));
    EXPECT(0, pthread_barrier_init(&changing, NULL, (unsigned)threads));
    EXPECT(0, run_threads(threads, shrink));
    return pass();
}
