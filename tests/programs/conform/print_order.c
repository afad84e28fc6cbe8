/* Lines that threads print in turn, ordered by nothing but a mutex or a condition: no flush of the program's own. */
#include "../harness.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static long turn;

static void print(int self)
{
    printf("line %ld by thread %d\n", turn, self);
    turn++;
}

static long by_mutex(int self)
{
    for (bool done = false; !done;) {
        EXPECT(0, pthread_mutex_lock(&mutex));
        if (turn % threads == self && turn < iterations)
            print(self);
        done = turn >= iterations;
        EXPECT(0, pthread_mutex_unlock(&mutex));
    }
    return 0;
}

static long by_condition(int self)
{
    EXPECT(0, pthread_mutex_lock(&mutex));
    while (turn < iterations) {
        if (turn % threads == self) {
            print(self);
            EXPECT(0, pthread_cond_broadcast(&moved));
        }
        else
            EXPECT(0, pthread_cond_wait(&moved, &mutex));
    }
    EXPECT(0, pthread_mutex_unlock(&mutex));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 200);
    run_threads(threads, by_mutex);
    turn = 0;
    run_threads(threads, by_condition);
    return pass();
}
