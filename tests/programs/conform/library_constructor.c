/* A library of the program's own has a constructor that allocates: it runs once, and threads share what it made. */
#include "../harness.h"
#include "../libraries/constructed.h"

static pthread_barrier_t barrier;

static long work(int self)
{
    long violations = constructed_times() != 1 || strcmp(constructed_name, "named") != 0;
    for (int i = self; i < CONSTRUCTED; i += threads)
        constructed_numbers[i] = i;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < CONSTRUCTED; i++)
        violations += constructed_numbers[i] != i;
    pthread_barrier_wait(&barrier);
    constructed_add(0, 1);
    if (self == 0)
        constructed_name = realloc(constructed_name, 4000);
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    long violations = run_threads(threads, work);
    EXPECT(threads, constructed_numbers[0]);
    return verdict(violations, "what the constructor made was not common");
}
