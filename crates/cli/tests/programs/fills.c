/* A thread writes as many MiB of memory as the argument says. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *argument)
{
	size_t bytes = (size_t)argument << 20;
	char *memory = malloc(bytes);

	if (memory)
		memset(memory, 1, bytes);
	return memory;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *memory;

	if (argc < 2 || pthread_create(&thread, NULL, work, (void *)atol(argv[1])))
		return 1;
	pthread_join(thread, &memory);
	return memory == NULL;
}
