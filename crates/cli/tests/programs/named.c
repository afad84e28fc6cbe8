/* Threads of all nodes and a child process take turns by named semaphores, and read what the one before has written; a child posts one
 * in a mapped file. With an argument, main is alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 50 };

static char names[THREADS][40];
static sem_t *turns[THREADS];
static long written[THREADS][1024];
static long wrong;

static void *work(void *argument)
{
    long self = (long)argument, before = (self + THREADS - 1) % THREADS;
    for (long round = 0; round < ROUNDS; round++) {
        sem_wait(turns[self]);
        wrong += written[before][0] != (self == 0 ? round : round + 1);
        written[self][0] = round + 1;
        sem_post(turns[(self + 1) % THREADS]);
    }
    return NULL;
}

/* A child process answers each post of `there` by one of `back`, and opens both by their names. */
static int answers(const char *there, const char *back)
{
    pid_t child = fork();
    if (child == 0) {
        sem_t *from = sem_open(there, 0), *to = sem_open(back, 0);
        for (int round = 0; round < ROUNDS; round++) {
            sem_wait(from);
            sem_post(to);
        }
        _exit(sem_close(from) || sem_close(to));
    }
    sem_t *to = sem_open(there, 0), *from = sem_open(back, 0);
    for (int round = 0; round < ROUNDS; round++) {
        sem_post(to);
        sem_wait(from);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status || sem_close(from) || sem_close(to);
}

/* A child process posts a semaphore in a mapped file, for which a thread waits. */
static int posted(void)
{
    int file = memfd_create("placed", 0);
    if (ftruncate(file, sizeof(sem_t)) != 0)
        return 1;
    sem_t *placed = mmap(NULL, sizeof *placed, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (placed == MAP_FAILED || close(file) != 0 || sem_init(placed, 1, 0) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0)
        _exit(sem_post(placed) != 0);
    int status = 1;
    sem_wait(placed);
    waitpid(child, &status, 0);
    return status || sem_destroy(placed) || munmap(placed, sizeof *placed);
}

static void *answered(void *unused)
{
    printf("%d %d\n", answers(names[0], names[1]), unused == NULL && posted());
    return unused;
}

int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 0; i < THREADS; i++) {
        snprintf(names[i], sizeof names[i], "/named-%d-%d", (int)getpid(), i);
        turns[i] = sem_open(names[i], O_CREAT | O_EXCL, 0600, argc == 1 && i == 0);
        if (turns[i] == SEM_FAILED)
            return perror("sem_open"), 1;
    }
    printf("%d %d\n", sem_open(names[0], 0) == turns[0], sem_open("/named-absent", 0) == SEM_FAILED);
    if (argc == 1) {
        pthread_t threads[THREADS];
        for (long i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, work, (void *)i);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        sem_wait(turns[0]);
        pthread_create(&threads[0], NULL, answered, NULL);
        pthread_join(threads[0], NULL);
    }
    answered(argc == 1 ? NULL : names);
    int value = -1;
    sem_post(turns[2]);
    sem_getvalue(turns[2], &value);
    printf("%ld %d\n", wrong, value);
    for (int i = 0; i < THREADS; i++)
        if (sem_close(turns[i]) || sem_unlink(names[i]))
            return 1;
    return 0;
}
