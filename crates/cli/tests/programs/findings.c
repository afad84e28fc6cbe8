/* Threads count in elements of one array that share a page, and in elements that have pages of their own; they add to one
   field of their particles while all others read another field, which nobody writes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
enum { THREADS = 4, ROUNDS = 30, PAGE = 4096, PARTICLES = 512 };
struct padded { long count; char rest[PAGE - sizeof(long)]; };
struct particle { double mass; double place[3]; long hits; };
long counters[THREADS] __attribute__((aligned(PAGE)));
static struct padded padded[THREADS] __attribute__((aligned(PAGE)));
static struct particle *particles __attribute__((aligned(PAGE)));
static pthread_barrier_t barrier __attribute__((aligned(PAGE)));
static void *work(void *argument) {
    long self = (long)argument;
    double mass = 0;
    for (int round = 0; round < ROUNDS; round++) {
        counters[self]++;
        padded[self].count++;
        for (int i = 0; i < PARTICLES; i++)
            if (i % THREADS == self) particles[i].hits++;
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < PARTICLES; i++) mass += particles[i].mass;
        pthread_barrier_wait(&barrier);
    }
    if (mass != ROUNDS * PARTICLES) abort();
    return NULL;
}
int main(void) {
    pthread_t threads[THREADS];
    particles = calloc(PARTICLES, sizeof *particles);
    for (int i = 0; i < PARTICLES; i++) particles[i].mass = 1;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    long counts = 0, hits = 0;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) counts += counters[i] + padded[i].count;
    for (int i = 0; i < PARTICLES; i++) hits += particles[i].hits;
    printf("%ld counts, %ld hits\n", counts, hits);
    return 0;
}
