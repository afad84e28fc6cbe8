/* Local variables of main and of threads, written by other threads through pointers. */
#include "../harness.h"

static struct job {
    int *input;
    long *output;
} jobs[MAX_THREADS];
static int *local_of[MAX_THREADS];
static pthread_barrier_t barrier;

static long work(int self)
{
    int mine[600];
    for (int i = 0; i < 600; i++)
        mine[i] = -1;
    local_of[self] = mine;
    pthread_barrier_wait(&barrier);
    int *right = local_of[(self + 1) % threads];
    for (int i = 0; i < 600; i++)
        right[i] = self * 1000 + i;
    pthread_barrier_wait(&barrier);
    long violations = 0;
    int left = (self + threads - 1) % threads;
    for (int i = 0; i < 600; i++)
        violations += mine[i] != left * 1000 + i;
    *jobs[self].output = *jobs[self].input * 3;
    pthread_barrier_wait(&barrier); /* nobody leaves while others use its stack */
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    int input[MAX_THREADS];
    long output[MAX_THREADS];
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    for (int i = 0; i < threads; i++) {
        input[i] = i + 10;
        output[i] = 0;
        jobs[i] = (struct job){&input[i], &output[i]};
    }
    long violations = run_threads(threads, work);
    for (int i = 0; i < threads; i++)
        EXPECT((i + 10) * 3, output[i]);
    return verdict(violations, "a local variable was not common");
}
