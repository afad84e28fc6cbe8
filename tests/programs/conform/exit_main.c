/* main ends with pthread_exit while others run: the program goes on and ends with status 0 after the last one. */
#include "../harness.h"
#include <semaphore.h>

static sem_t main_is_leaving;
static int result;

static void at_end(void)
{
    printf("result %d\n", result);
    pass();
}

static void *survivor(void *argument)
{
    sem_wait(&main_is_leaving);
    result = 7 * *(int *)argument;
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    EXPECT(0, sem_init(&main_is_leaving, 0, 0));
    EXPECT(0, atexit(at_end));
    int *argument = malloc(sizeof *argument);
    *argument = 6;
    pthread_t id;
    EXPECT(0, pthread_create(&id, NULL, survivor, argument));
    EXPECT(0, pthread_detach(id));
    sem_post(&main_is_leaving);
    pthread_exit(NULL);
}
