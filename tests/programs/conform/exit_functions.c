/* Functions registered with atexit by main and by a thread run in reverse order at the end, and see common data. */
#include "../harness.h"

static char *message;

static void by_main(void)
{
    printf("exit function of main: %s\n", message);
}

static void by_thread(void)
{
    printf("exit function of a thread: %s\n", message);
}

static void *registers(void *unused)
{
    (void)unused;
    EXPECT(0, atexit(by_thread));
    message = strdup("written by a thread");
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    EXPECT(0, atexit(by_main));
    pthread_t id;
    EXPECT(0, pthread_create(&id, NULL, registers, NULL));
    EXPECT(0, pthread_join(id, NULL));
    return pass();
}
