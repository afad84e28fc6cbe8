/* What every workload shares: options, a team of threads, the clock, checksums.
 *
 * Each program is plain C11 with pthreads or with OpenMP. It prints one line "result: ..." on standard output that does not
 * depend on the number of threads, and one line "time: SECONDS" (the parallel section only) on standard error.
 */
#ifndef APPS_COMMON_H
#define APPS_COMMON_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One integer option, for instance "-n 1024". `value` is filled in by parse_options(). */
struct option_spec {
    char letter;
    const char *meaning;
    long small; /* value in the small problem, the default */
    long paper; /* value in the paper's problem, or in one that takes some tenths of a second on two processors */
    long min, max;
    long value;
};

/* What a program is and takes. `file` is non-null where the program takes "-f FILE"; it holds the
 * default, a path from the directory above the program's. */
struct app {
    const char *name;
    const char *purpose;
    struct option_spec *specs;
    int nspecs;
    const char *file;
    const char *file_meaning;
};

#define MAX_THREADS 1024
extern int threads;      /* -p: number of threads that compute, at most MAX_THREADS */
extern bool self_check;  /* -c: verify the result by an independent computation */
extern bool paper_size;  /* -s paper */

/* Reads the command line into `app` and the variables above; on a mistake prints one line and exits with 2. */
void parse_options(struct app *app, int argc, char **argv);

/* Prints "NAME: message" on standard error and exits with status 1 (the arguments are those of printf). */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* malloc that ends the program when there is no memory. */
void *must_alloc(size_t bytes);

/* Who computes: main creates `threads` threads and waits, or creates one less and computes as thread 0. */
enum main_role { MAIN_WAITS, MAIN_WORKS };

/* Runs `work(0)` ... `work(threads - 1)` in parallel, and prints the "time:" line. */
void run_team(enum main_role role, void (*work)(int self));

/* Runs `work()`, which makes its threads itself, and prints the "time:" line. */
void run_alone(void (*work)(void));

/* A barrier of the whole team, usable inside run_team() only. */
void team_barrier(void);

/* The part [*first, *last) of 0..n that belongs to thread `self`, in equal contiguous blocks. */
void my_block(long n, int self, long *first, long *last);

/* 64-bit FNV-1a hash of `bytes` bytes, continued from `hash` (HASH_START for a new one). */
#define HASH_START 0xcbf29ce484222325u
uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes);

/* A linear congruential generator (Knuth's MMIX constants): the same numbers on every machine. */
struct random {
    uint64_t state;
};
uint64_t random_bits(struct random *r);   /* 32 random bits */
double random_unit(struct random *r);     /* uniform in [0, 1) */

/* Ends the program with an error line unless `ok`; with -c prints "check: what: ok" on standard error. */
void check(bool ok, const char *what);

#endif
