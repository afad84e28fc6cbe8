/* Threads that print without the lock of standard output, while others of their node synchronise: what a release writes out must be
 * neither lost nor printed twice, and come in order. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { LINES = 60000, TURNS = 1200, WORKERS = 4 };

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t turns = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static int turn, is_over;
static long rounds;

/* Prints a line in one of the ways there are. */
static void print(int number, int way)
{
    char line[64];
    int length = snprintf(line, sizeof line, "%d by %d\n", number, way);
    switch (way) {
    case 0:
        fwrite_unlocked(line, 1, length, stdout);
        break;
    case 1:
        for (int at = 0; at < length; at++)
            putc_unlocked(line[at], stdout);
        break;
    case 2:
        fputs_unlocked(line, stdout);
        break;
    case 3:
        printf("%d by", number);
        for (int at = strcspn(line, "y") + 1; at < length; at++)
            putchar_unlocked(line[at]);
        break;
    case 4:
        flockfile(stdout);
        for (int at = 0; at < length; at++)
            putc_unlocked(line[at], stdout);
        funlockfile(stdout);
        break;
    default:
        for (int at = 0; at < length; at++)
            putc(line[at], stdout);
    }
}

static void *keep_busy(void *unused)
{
    (void)unused;
    for (int over = 0; !over;) {
        pthread_mutex_lock(&busy);
        rounds++;
        over = is_over;
        pthread_mutex_unlock(&busy);
    }
    return NULL;
}

/* Prints each line whose turn is its own. */
static void *take_turns(void *argument)
{
    int self = (int)(long)argument;
    pthread_mutex_lock(&turns);
    while (turn < TURNS) {
        if (turn % WORKERS == self) {
            print(turn, turn / WORKERS % 6);
            turn++;
            pthread_cond_broadcast(&passed);
        } else {
            pthread_cond_wait(&passed, &turns);
        }
    }
    pthread_mutex_unlock(&turns);
    return NULL;
}

int main(void)
{
    pthread_t others[WORKERS], printers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&others[i], NULL, keep_busy, NULL);
    for (int i = 0; i < LINES; i++)
        print(i, i / 100 % 4);
    for (long i = 0; i < WORKERS; i++)
        pthread_create(&printers[i], NULL, take_turns, (void *)i);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(printers[i], NULL);
    for (int i = 0; i < LINES; i++)
        print(i, i / 100 % 6);
    pthread_mutex_lock(&busy);
    is_over = 1;
    pthread_mutex_unlock(&busy);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(others[i], NULL);
    return 0;
}
