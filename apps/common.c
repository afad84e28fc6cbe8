#include "common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int threads = 1;
bool self_check;
bool paper_size;

static const char *program = "app";
static void (*team_work)(int self);
static pthread_barrier_t barrier;

void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static void usage_error(const char *format, const char *subject)
{
    fprintf(stderr, "%s: ", program);
    fprintf(stderr, format, subject);
    fprintf(stderr, " (try -h)\n");
    exit(2);
}

static void print_help(const struct app *app)
{
    printf("%s: %s\n", app->name, app->purpose);
    printf("usage: %s [-p THREADS] [-s small|paper] [-c]%s", app->name, app->file ? " [-f FILE]" : "");
    for (int i = 0; i < app->nspecs; i++)
        printf(" [-%c N]", app->specs[i].letter);
    printf("\n  -p  number of threads (default 1)\n");
    printf("  -s  problem size (default small)\n");
    printf("  -c  check the result by an independent computation\n");
    if (app->file)
        printf("  -f  %s (default %s)\n", app->file_meaning, app->file);
    for (int i = 0; i < app->nspecs; i++)
        printf("  -%c  %s (small %ld, paper %ld)\n", app->specs[i].letter, app->specs[i].meaning,
               app->specs[i].small, app->specs[i].paper);
}

/* A default file is looked for beside the directory of the program, wherever the program is started from. */
static const char *beside_program(const char *file)
{
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        return file;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    size_t room = sizeof path - (size_t)(slash - path);
    if ((size_t)snprintf(slash, room, "/../%s", file) >= room)
        return file;
    return path;
}

static long to_number(const char *text, char letter, long min, long max)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end != '\0' || value < min || value > max) {
        fprintf(stderr, "%s: -%c wants a whole number from %ld to %ld, not '%s' (try -h)\n", program, letter, min,
                max, text);
        exit(2);
    }
    return value;
}

static struct option_spec *find_spec(struct app *app, char letter)
{
    for (int i = 0; i < app->nspecs; i++)
        if (app->specs[i].letter == letter)
            return &app->specs[i];
    return NULL;
}

void parse_options(struct app *app, int argc, char **argv)
{
    program = app->name;
    /* Explicit sizes win over -s wherever they stand, so -s is applied only to what was not given. */
    bool given[256] = {false}, file_given = false;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (arg[0] != '-' || arg[1] == '\0')
            usage_error("unexpected argument '%s'", arg);
        char letter = arg[1];
        if (letter == 'c' && arg[2] == '\0') {
            self_check = true;
            continue;
        }
        if (letter == 'h' && arg[2] == '\0') {
            print_help(app);
            exit(0);
        }
        struct option_spec *spec = find_spec(app, letter);
        if (!spec && letter != 'p' && letter != 's' && !(letter == 'f' && app->file))
            usage_error("unknown option '%s'", arg);
        const char *value = arg[2] ? arg + 2 : i + 1 < argc ? argv[++i] : NULL;
        if (!value)
            usage_error("option '%s' wants a value", arg);
        if (letter == 'p')
            threads = (int)to_number(value, letter, 1, MAX_THREADS);
        else if (letter == 'f') {
            app->file = value;
            file_given = true;
        } else if (letter == 's') {
            if (strcmp(value, "small") != 0 && strcmp(value, "paper") != 0)
                usage_error("-s wants small or paper, not '%s'", value);
            paper_size = strcmp(value, "paper") == 0;
        } else {
            spec->value = to_number(value, letter, spec->min, spec->max);
            given[(unsigned char)letter] = true;
        }
    }
    if (app->file && !file_given)
        app->file = beside_program(app->file);
    for (int i = 0; i < app->nspecs; i++)
        if (!given[(unsigned char)app->specs[i].letter])
            app->specs[i].value = paper_size ? app->specs[i].paper : app->specs[i].small;
}

void *must_alloc(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        die("cannot allocate %zu bytes: %s", bytes, strerror(errno));
    return memory;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_time(double start)
{
    fprintf(stderr, "time: %.6f\n", now() - start);
}

static void *thread_main(void *self)
{
    team_work((int)(intptr_t)self);
    return NULL;
}

void run_team(enum main_role role, void (*work)(int self))
{
    pthread_t ids[MAX_THREADS];
    int first = role == MAIN_WORKS ? 1 : 0;
    team_work = work;
    int error = pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    if (error)
        die("pthread_barrier_init: %s", strerror(error));
    double start = now();
    for (int i = first; i < threads; i++) {
        error = pthread_create(&ids[i], NULL, thread_main, (void *)(intptr_t)i);
        if (error)
            die("pthread_create: %s", strerror(error));
    }
    if (role == MAIN_WORKS)
        work(0);
    for (int i = first; i < threads; i++) {
        error = pthread_join(ids[i], NULL);
        if (error)
            die("pthread_join: %s", strerror(error));
    }
    print_time(start);
    pthread_barrier_destroy(&barrier);
}

void run_alone(void (*work)(void))
{
    double start = now();
    work();
    print_time(start);
}

void team_barrier(void)
{
    int error = pthread_barrier_wait(&barrier);
    if (error && error != PTHREAD_BARRIER_SERIAL_THREAD)
        die("pthread_barrier_wait: %s", strerror(error));
}

void my_block(long n, int self, long *first, long *last)
{
    *first = n * self / threads;
    *last = n * (self + 1) / threads;
}

uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

uint64_t random_bits(struct random *r)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return r->state >> 32;
}

double random_unit(struct random *r)
{
    return (double)random_bits(r) / 4294967296.0;
}

void check(bool ok, const char *what)
{
    if (!ok)
        die("check failed: %s", what);
    fprintf(stderr, "check: %s: ok\n", what);
}
