/* main calls exit() while threads go on writing to its stack: no node must need that stack once the others have ended. */
#include "../harness.h"

static pthread_barrier_t all_write;

static void *writes(void *mine)
{
    volatile long *counter = mine;
    *counter = 1;
    pthread_barrier_wait(&all_write);
    while (*counter > 0)
        *counter += 1;
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 1);
    long counters[64] = {0};
    EXPECT(0, pthread_barrier_init(&all_write, NULL, (unsigned)threads + 1));
    for (int i = 0; i < threads; i++) {
        pthread_t id;
        EXPECT(0, pthread_create(&id, NULL, writes, &counters[i]));
    }
    pthread_barrier_wait(&all_write);
    exit(pass());
}
