/* As many threads as its argument says meet at a barrier, read each other's memory and add up what they find. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 256
#define APART 512

static long count, sum;
static long value[MOST * APART];
static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument)
{
	long index = (long)argument;

	value[index * APART] = index + 1;
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(&mutex);
	sum += value[(index + 1) % count * APART];
	pthread_mutex_unlock(&mutex);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[MOST];
	long index;

	count = argc > 1 ? atol(argv[1]) : 2;
	if (count < 1 || count > MOST)
		return 2;
	pthread_barrier_init(&barrier, NULL, count);
	for (index = 0; index < count; index++)
		if (pthread_create(&threads[index], NULL, work, (void *)index))
			return 1;
	for (index = 0; index < count; index++)
		pthread_join(threads[index], NULL);
	printf("%ld\n", sum);
	return 0;
}
