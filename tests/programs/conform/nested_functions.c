/* Pointers to functions inside functions (gcc's, and Fortran's internal procedures): the code is on the stack of the thread that has made the
 * pointer, and threads of other nodes call it. */
#include "../harness.h"

static long apply(long (*function)(long), long value)
{
    return function(value);
}

static long sum(long from, long to)
{
    long total = 0;
    long add(long value)
    {
        return total += value;
    }
    for (long i = from; i < to; i++)
        apply(add, i);
    return total;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    pthread_t all[MAX_THREADS];
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    long common = 0, next = 0;
    /* Called by all threads, by way of the stack of this one. */
    void *work(void *argument)
    {
        pthread_mutex_lock(&lock);
        const long own = next++;
        common += sum(own * 100, own * 100 + 100);
        pthread_mutex_unlock(&lock);
        return argument;
    }
    for (int i = 0; i < threads; i++)
        pthread_create(&all[i], NULL, work, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    if (common != sum(0, threads * 100))
        fail("%ld, not %ld", common, sum(0, threads * 100));
    printf("%ld\n", common);
    return pass();
}
