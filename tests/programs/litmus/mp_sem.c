/* Message passing by semaphores: a ball goes round a ring of threads, each adds to it without any lock. */
#include "../harness.h"
#include <semaphore.h>

static sem_t turn[MAX_THREADS];
static struct {
    long passes;
    long last;
    long sum;
} *ball;

static long work(int self)
{
    long violations = 0;
    for (long round = 0; round < iterations; round++) {
        sem_wait(&turn[self]);
        violations += ball->passes != round * threads + self;
        violations += ball->passes > 0 && ball->last != (self + threads - 1) % threads;
        ball->passes++;
        ball->last = self;
        ball->sum += self;
        sem_post(&turn[(self + 1) % threads]);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 500);
    ball = calloc(1, sizeof *ball);
    for (int i = 0; i < threads; i++)
        EXPECT(0, sem_init(&turn[i], 0, i == 0));
    long violations = run_threads(threads, work);
    EXPECT(iterations * threads * (threads - 1) / 2, ball->sum);
    return verdict(violations, "the ball arrived in an old state");
}
