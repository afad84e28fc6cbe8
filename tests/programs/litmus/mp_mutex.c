/* Message passing by a mutex: data written before a flag is set under a mutex is seen after the flag is. */
#include "../harness.h"
#include <sched.h>

enum { WORDS = 8 };
static struct {
    long word;
    char pad[PAGE - sizeof(long)];
} data[WORDS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long flag, acknowledged;

static long locked_read(const long *of)
{
    pthread_mutex_lock(&mutex);
    long value = *of;
    pthread_mutex_unlock(&mutex);
    return value;
}

static void wait_for(const long *of, long value)
{
    while (locked_read(of) < value)
        sched_yield();
}

static long work(int self)
{
    long violations = 0;
    for (long round = 1; round <= iterations; round++) {
        if (self == 0) {
            for (int i = 0; i < WORDS; i++)
                data[i].word = round * 10 + i;
            pthread_mutex_lock(&mutex);
            flag = round;
            pthread_mutex_unlock(&mutex);
            wait_for(&acknowledged, round * (threads - 1));
        } else {
            wait_for(&flag, round);
            for (int i = 0; i < WORDS; i++)
                violations += data[i].word != round * 10 + i;
            pthread_mutex_lock(&mutex);
            acknowledged++;
            pthread_mutex_unlock(&mutex);
        }
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 200);
    return verdict(run_threads(threads, work), "old data after the flag");
}
