/* Threads of all nodes and a child process take turns by named semaphores, and read what the one before has written; a child posts one
 * in a mapped file. A thread makes one that main opens, and takes its name away. */
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

static char made[40];

static void *makes(void *unused)
{
    sem_t *semaphore = sem_open(made, O_CREAT | O_EXCL, 0600, 3);
    if (semaphore == SEM_FAILED || sem_open(made, O_CREAT | O_EXCL, 0600, 3) != SEM_FAILED)
        exit(1);
    return semaphore;
}

static void *unlinks(void *unused)
{
    return sem_unlink(made) ? made : unused;
}

/* What another thread does. */
static void *elsewhere(void *(*work)(void *))
{
    void *result = NULL;
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, &result);
    return result;
}

static void made_elsewhere(void)
{
    int value = -1;
    snprintf(made, sizeof made, "/named-%d-made", (int)getpid());
    sem_t *first = elsewhere(makes), *again = sem_open(made, 0);
    sem_wait(again);
    sem_getvalue(first, &value);
    printf("%d %d ", sem_trywait(first), value);
    printf("%d ", elsewhere(unlinks) == NULL);
    printf("%d ", sem_open(made, 0) == SEM_FAILED);
    sem_t *new = sem_open(made, O_CREAT, 0600, 9);
    sem_getvalue(first, &value);
    printf("%d ", value);
    sem_getvalue(new, &value);
    printf("%d %d\n", value, sem_unlink(made) || sem_close(first) || sem_close(again) || sem_close(new));
}

static void *answered(void *unused)
{
    printf("%d %d\n", answers(names[0], names[1]), unused == NULL && posted());
    return unused;
}

int main(void)
{
    for (int i = 0; i < THREADS; i++) {
        snprintf(names[i], sizeof names[i], "/named-%d-%d", (int)getpid(), i);
        turns[i] = sem_open(names[i], O_CREAT | O_EXCL, 0600, i == 0);
        if (turns[i] == SEM_FAILED)
            return perror("sem_open"), 1;
    }
    printf("%d %d\n", sem_open(names[0], 0) == turns[0], sem_open("/named-absent", 0) == SEM_FAILED);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sem_wait(turns[0]);
    elsewhere(answered);
    answered(NULL);
    made_elsewhere();
    int value = -1;
    sem_post(turns[2]);
    sem_getvalue(turns[2], &value);
    printf("%ld %d\n", wrong, value);
    for (int i = 0; i < THREADS; i++)
        if (sem_close(turns[i]) || sem_unlink(names[i]))
            return 1;
    return 0;
}
