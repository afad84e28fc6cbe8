/* Globals: initialised, zero, static, static in a function, constant, pointers among them, and large ones. */
#include "../harness.h"

int initialised[2000] = {1, 2, 3};
int zero[200000];
static const char *words[] = {"alpha", "beta", "gamma"};
static const int *inside = &initialised[1999];
static int *volatile cross_pointer = zero;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static int next_ticket(void)
{
    static int ticket = 100; /* a static local, under the mutex */
    return ticket++;
}

static long sum_of_tickets;

static long work(int self)
{
    long violations = 0;
    violations += initialised[0] != 1 || initialised[2] != 3 || initialised[3] != 0 || *inside != 77;
    violations += strcmp(words[1], "beta") != 0 || cross_pointer != zero;
    pthread_barrier_wait(&barrier);
    for (int i = self; i < 200000; i += threads)
        zero[i] = i + self;
    for (int i = 3 + self; i < 1999; i += threads)
        initialised[i] = -i;
    pthread_mutex_lock(&mutex);
    sum_of_tickets += next_ticket();
    pthread_mutex_unlock(&mutex);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 200000; i++)
        violations += cross_pointer[i] != i + i % threads;
    for (int i = 3; i < 1999; i++)
        violations += initialised[i] != -i;
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    initialised[1999] = 77;
    long violations = run_threads(threads, work);
    EXPECT(threads * 100 + threads * (threads - 1) / 2, sum_of_tickets);
    return verdict(violations, "a global was not common");
}
