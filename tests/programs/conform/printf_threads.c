/* printf in threads, one after the other (joined before the next starts): every line arrives, in order. */
#include "../harness.h"

static const char *names[] = {"zero", "one", "two", "three", "four", "five", "six", "seven"};

static void *say(void *argument)
{
    int self = (int)(intptr_t)argument;
    char *text = malloc(100);
    snprintf(text, 100, "thread %s", names[self]);
    printf("%s says %d, %.3f and %c\n", text, self * self, self / 8.0, 'a' + self);
    puts(text);
    putchar('\n');
    fflush(stdout);
    free(text);
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 8, 1);
    for (int i = 0; i < threads && i < 8; i++) {
        pthread_t id;
        EXPECT(0, pthread_create(&id, NULL, say, (void *)(intptr_t)i));
        EXPECT(0, pthread_join(id, NULL));
    }
    fflush(stdout);
    return pass();
}
