/* What one construct of OpenMP costs a team with a thread for each node, natively or on nodes. Prints NAME NANOSECONDS for each
 * batch of each construct; batches are as long as it takes to see differences. */
#include <omp.h>
#include <stdio.h>

enum {
    BATCHES = 9,
    LOOP = 64,
    PAGE = 4096 / sizeof(long)
};

/* A batch takes at least so many seconds. */
static const double LONG_ENOUGH = 0.004;

static inline void nothing(void) { __asm__ volatile(""); }

static void parallel(int n)
{
    for (int i = 0; i < n; i++) {
#pragma omp parallel
        nothing();
    }
}

static void barrier(int n)
{
#pragma omp parallel
    for (int i = 0; i < n; i++) {
#pragma omp barrier
    }
}

static void static_loop(int n)
{
#pragma omp parallel
    for (int i = 0; i < n; i++) {
#pragma omp for schedule(static)
        for (int j = 0; j < LOOP; j++)
            nothing();
    }
}

static void runtime_loop(int n)
{
    omp_set_schedule(omp_sched_static, 1);
#pragma omp parallel
    for (int i = 0; i < n; i++) {
#pragma omp for schedule(runtime)
        for (int j = 0; j < LOOP; j++)
            nothing();
    }
}

static void dynamic_loop(int n)
{
#pragma omp parallel
    for (int i = 0; i < n; i++) {
#pragma omp for schedule(dynamic)
        for (int j = 0; j < LOOP; j++)
            nothing();
    }
}

static void guided_loop(int n)
{
#pragma omp parallel
    for (int i = 0; i < n; i++) {
#pragma omp for schedule(guided)
        for (int j = 0; j < LOOP; j++)
            nothing();
    }
}

static void sections(int n)
{
#pragma omp parallel
    for (int i = 0; i < n; i++) {
#pragma omp sections
        {
#pragma omp section
            nothing();
#pragma omp section
            nothing();
#pragma omp section
            nothing();
#pragma omp section
            nothing();
        }
    }
}

static void single(int n)
{
#pragma omp parallel
    for (int i = 0; i < n; i++) {
#pragma omp single
        nothing();
    }
}

static void copyprivate(int n)
{
    int copied = 0;
#pragma omp parallel firstprivate(copied)
    for (int i = 0; i < n; i++) {
#pragma omp single copyprivate(copied)
        copied = i;
    }
}

static void critical(int n)
{
#pragma omp parallel
    for (int i = 0; i < n; i++) {
#pragma omp critical
        nothing();
    }
}

static void ordered(int n)
{
#pragma omp parallel
    for (int i = 0; i < n; i++) {
#pragma omp for ordered schedule(static, 1)
        for (int j = 0; j < 8; j++) {
#pragma omp ordered
            nothing();
        }
    }
}

static long sums[LOOP * PAGE];

static void dirty(int n)
{
    for (int i = 0; i < n; i++) {
#pragma omp parallel for schedule(static)
        for (int j = 0; j < LOOP; j++)
            sums[j * PAGE]++;
    }
}

static const struct {
    const char *name;
    void (*run)(int n);
} constructs[] = {
    { "parallel", parallel },
    { "barrier", barrier },
    { "static", static_loop },
    { "runtime", runtime_loop },
    { "dynamic", dynamic_loop },
    { "guided", guided_loop },
    { "sections", sections },
    { "single", single },
    { "copyprivate", copyprivate },
    { "critical", critical },
    { "ordered", ordered },
    { "dirty", dirty },
};

/* The seconds that `n` times take. */
static double batch(void (*run)(int n), int n)
{
    double start = omp_get_wtime();
    run(n);
    return omp_get_wtime() - start;
}

int main(void)
{
    for (size_t c = 0; c < sizeof constructs / sizeof *constructs; c++) {
        int n = 8;
        while (batch(constructs[c].run, n) < LONG_ENOUGH && n < 1 << 24)
            n *= 2;
        for (int i = 0; i < BATCHES; i++)
            printf("%s %.0f\n", constructs[c].name, batch(constructs[c].run, n) / n * 1e9);
    }
    return 0;
}
