/* What every test program shares: options, a team of threads, a verdict.
 *
 * A program prints only from main after its threads have ended, so that its output is the same in every run:
 * "PASS name" and status 0, or "FAIL name: why" and status 1.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 256

static int threads = 4;       /* -p */
static long iterations = 100; /* -i */
static const char *test_name = "?";

/* Reads -p and -i; the defaults are those given. */
static inline void parse(int argc, char **argv, int default_threads, long default_iterations)
{
    const char *slash = strrchr(argv[0], '/');
    test_name = slash ? slash + 1 : argv[0];
    threads = default_threads;
    iterations = default_iterations;
    for (int i = 1; i < argc; i++) {
        char *end = NULL;
        long value = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : 0;
        bool number = end && *end == '\0' && value >= 1;
        if (strcmp(argv[i], "-p") == 0 && number && value <= MAX_THREADS)
            threads = (int)value;
        else if (strcmp(argv[i], "-i") == 0 && number)
            iterations = value;
        else {
            fprintf(stderr, "usage: %s [-p THREADS (1 to %d)] [-i ITERATIONS]\n", test_name, MAX_THREADS);
            exit(2);
        }
        i++;
    }
}

/* Ends the program with a FAIL line (the arguments are those of printf). */
__attribute__((format(printf, 1, 2), noreturn)) static inline void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("FAIL %s: ", test_name);
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
    _Exit(1);
}

/* Has a thread end the program: its function does not return. */
__attribute__((noreturn)) static inline void end_by_thread(void *(*function)(void *))
{
    pthread_t id;
    int error = pthread_create(&id, NULL, function, NULL);
    if (error)
        fail("a thread cannot be started: %s", strerror(error));
    pthread_join(id, NULL);
    fail("the thread came back");
}

/* Fails unless the condition holds. */
#define REQUIRE(condition)                                                      \
    do {                                                                        \
        if (!(condition))                                                       \
            fail("line %d: %s", __LINE__, #condition);                          \
    } while (0)

/* Fails unless an expression that gives an error code (or any number) gives the expected one. */
#define EXPECT(expected, expression)                                            \
    do {                                                                        \
        long expect_got = (long)(expression), expect_want = (long)(expected);   \
        if (expect_got != expect_want)                                          \
            fail("line %d: %s gave %ld, expected %ld", __LINE__, #expression, expect_got, expect_want); \
    } while (0)

/* Prints the PASS line; main returns this. */
static inline int pass(void)
{
    printf("PASS %s\n", test_name);
    return 0;
}

static long (*harness_work)(int self);

static inline void *harness_thread(void *self)
{
    return (void *)(intptr_t)harness_work((int)(intptr_t)self);
}

/* Runs work(0) ... work(count - 1), each in a thread of its own, and returns the sum of what they return: by
 * custom the number of violations seen. */
static inline long run_threads(int count, long (*work)(int self))
{
    pthread_t ids[MAX_THREADS];
    long sum = 0;
    harness_work = work;
    for (int i = 0; i < count; i++)
        EXPECT(0, pthread_create(&ids[i], NULL, harness_thread, (void *)(intptr_t)i));
    for (int i = 0; i < count; i++) {
        void *result = NULL;
        EXPECT(0, pthread_join(ids[i], &result));
        sum += (long)(intptr_t)result;
    }
    return sum;
}

static inline void *harness_alone(void *work)
{
    return (void *)(intptr_t)((long (*)(void))work)();
}

/* What work() returns, in a new thread: each on the next node. */
static inline long in_new_thread(long (*work)(void))
{
    pthread_t id;
    void *result = NULL;
    EXPECT(0, pthread_create(&id, NULL, harness_alone, (void *)work));
    EXPECT(0, pthread_join(id, &result));
    return (long)(intptr_t)result;
}

/* The verdict of a litmus program: main returns this. */
static inline int verdict(long violations, const char *what)
{
    if (violations)
        fail("%s: %ld times", what, violations);
    return pass();
}

/* A step of a simple generator of test data. */
static inline uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

#define PAGE 4096

#endif
