/* Lines that threads print in turn, ordered by nothing but a mutex or a condition. By turns they print without a flush of their own,
 * with one, and by the system call, as programs in Rust do; all of it also as errors. */
#include "../harness.h"
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static long turn;

static void print(int self)
{
    char line[64];
    int length = sprintf(line, "line %ld by thread %d\n", turn, self);
    switch (turn / threads % 4) {
    case 0:
    case 1:
        fputs(line, stdout);
        break;
    case 2:
        fputs(line, stdout);
        EXPECT(0, fflush(stdout));
        break;
    default:
        EXPECT(length, (int)write(STDOUT_FILENO, line, (size_t)length));
    }
    if (turn / threads % 2)
        fprintf(stderr, "error on line %ld by thread %d\n", turn, self);
    else
        EXPECT(length, (int)write(STDERR_FILENO, line, (size_t)length));
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
