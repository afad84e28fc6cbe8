/* Threads that hang, as the first argument says: in a ring of two mutexes, at a barrier where one thread does not come, or in
   a condition that nobody signals; or one that crashes. A pipe that nobody writes to holds up what is to come late. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct account {
    long balance;
    pthread_mutex_t lock;
};

static struct account accounts[2] = {{100, PTHREAD_MUTEX_INITIALIZER}, {100, PTHREAD_MUTEX_INITIALIZER}};
static pthread_barrier_t gate;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static int never[2];

__attribute__((noinline)) static void transfer(int from, int to) {
    pthread_mutex_lock(&accounts[from].lock);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&accounts[to].lock); /* the second lock */
    accounts[from].balance -= 1;
    accounts[to].balance += 1;
    pthread_mutex_unlock(&accounts[to].lock);
    pthread_mutex_unlock(&accounts[from].lock);
}

static void *transfers(void *number) {
    long me = (long)number;
    transfer((int)me, (int)(1 - me));
    return NULL;
}

static void *comes(void *unused) {
    pthread_barrier_wait(&gate);
    return unused;
}

static void *stays(void *unused) {
    char byte;
    pthread_barrier_wait(&both);
    if (read(never[0], &byte, 1) == 1) pthread_barrier_wait(&gate);
    return unused;
}

static void *waits(void *unused) {
    pthread_mutex_lock(&guard);
    pthread_cond_wait(&news, &guard);
    pthread_mutex_unlock(&guard);
    return unused;
}

static void *sleeps(void *unused) {
    char byte;
    if (read(0, &byte, 1) < 0) perror("read");
    return unused;
}

__attribute__((noinline)) static void store(long *nowhere) {
    *nowhere = 7; /* the crash */
}

static void *crashes(void *nowhere) {
    store(nowhere);
    return nowhere;
}

static void *spins(void *unused) {
    volatile long count = 0;
    for (;;) count++;
    return unused;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    pthread_t threads[2];
    pthread_barrier_init(&both, NULL, 2);
    pthread_barrier_init(&gate, NULL, 2);
    if (pipe(never) != 0) return 1;
    void *(*first)(void *) = NULL, *(*second)(void *) = NULL;
    if (strcmp(how, "mutexes") == 0) {
        first = second = transfers;
    } else if (strcmp(how, "barrier") == 0) {
        first = comes;
        second = NULL;
    } else if (strcmp(how, "condition") == 0) {
        first = second = waits;
    } else if (strcmp(how, "input") == 0) {
        first = waits;
        second = sleeps;
    } else if (strcmp(how, "crash") == 0) {
        pthread_create(&threads[0], NULL, crashes, NULL);
        pthread_join(threads[0], NULL);
        return 0;
    } else if (strcmp(how, "spin") == 0) {
        first = waits;
        second = spins;
    } else {
        return 2;
    }
    if (second == NULL) {
        pthread_create(&threads[0], NULL, first, (void *)0);
        pthread_create(&threads[1], NULL, stays, (void *)1);
        pthread_barrier_wait(&both);
    } else {
        pthread_create(&threads[0], NULL, first, (void *)0);
        pthread_create(&threads[1], NULL, second, (void *)1);
    }
    puts("all have started");
    fflush(stdout);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
