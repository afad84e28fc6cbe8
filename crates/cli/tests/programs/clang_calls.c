/* What only clang's library has: memory of its own functions, stacks, atomic functions, defaults, tasks that depend on all memory, and regions
 * with a condition. Prints the same natively and on nodes. */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4 };

typedef struct {
    uintptr_t address;
    size_t length;
    uint8_t flags;
} dependence;

enum { IN = 1, INOUT = 3, ALL = 0x80 };

int __kmpc_global_thread_num(void *place);
void *__kmpc_omp_task_alloc(void *place, int thread, int flags, size_t bytes, size_t shared, int (*routine)(int, void *));
int __kmpc_omp_task_with_deps(void *place, int thread, void *task, int count, dependence *list, int more, dependence *more_list);
void __kmpc_atomic_fixed4_add(void *place, int thread, int *to, int number);
void __kmpc_atomic_float8_max(void *place, int thread, double *to, double number);

/* As the compiler lays a task out. */
struct task {
    void *shared;
    int (*routine)(int, void *);
    int part;
    void *more[2];
    int number;
};

static int order[64], done;

static int note(int thread, void *task)
{
    (void)thread;
    int at = __atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
    order[at] = ((struct task *)task)->number;
    return 0;
}

static void give(int number, uintptr_t address, uint8_t flags)
{
    int thread = __kmpc_global_thread_num(NULL);
    struct task *task = __kmpc_omp_task_alloc(NULL, thread, 1, sizeof *task, 0, number < 0 ? NULL : note);
    task->number = number;
    dependence list = {address, 0, flags};
    __kmpc_omp_task_with_deps(NULL, thread, task, 1, &list, 0, NULL);
}

static void all_memory(void)
{
    static int a, b;
#pragma omp parallel num_threads(THREADS)
#pragma omp single
    for (int round = 0; round < 8; round++) {
        give(0, (uintptr_t)&a, INOUT);
        give(0, (uintptr_t)&b, IN);
        give(1, 0, ALL);
        give(-1, (uintptr_t)&a, IN);
        give(2, (uintptr_t)&b, INOUT);
        give(2, (uintptr_t)&a, IN);
        give(3, UINTPTR_MAX, INOUT);
    }
    for (int i = 0; i < done; i++)
        printf("%d%c", order[i], i % 6 == 5 ? '\n' : ' ');
}

static void memory(void)
{
    char *blocks[THREADS];
    int wrong = 0;
#pragma omp parallel num_threads(THREADS) reduction(+ : wrong)
    {
        int me = omp_get_thread_num();
        blocks[me] = kmp_malloc(100000);
        memset(blocks[me], me, 100000);
#pragma omp barrier
        int other = (me + 1) % THREADS;
        blocks[other] = kmp_realloc(blocks[other], 200000);
        for (int i = 0; i < 100000; i++)
            wrong += blocks[other][i] != other;
#pragma omp barrier
        kmp_free(blocks[me]);
        char *zeros = kmp_calloc(1000, 10);
        for (int i = 0; i < 10000; i++)
            wrong += zeros[i];
        kmp_free(zeros);
    }
    printf("memory: %d wrong\n", wrong);
}

static void atomics(void)
{
    int sum = 0;
    double largest = 0;
#pragma omp parallel num_threads(THREADS)
    for (int i = 0; i < 500; i++) {
        __kmpc_atomic_fixed4_add(NULL, 0, &sum, 1);
        __kmpc_atomic_float8_max(NULL, 0, &largest, i * 4.0 + omp_get_thread_num());
    }
    printf("sum %d, largest %.1f\n", sum, largest);
}

static void schedules(void)
{
    omp_sched_t kind;
    int chunk, threads_of[16];
    omp_get_schedule(&kind, &chunk);
#pragma omp parallel for schedule(runtime) num_threads(THREADS)
    for (int i = 0; i < 16; i++)
        threads_of[i] = omp_get_thread_num();
    printf("schedule %d,%d:", (int)kind, chunk);
    for (int i = 0; i < 16; i++)
        printf(" %d", threads_of[i]);
    printf("\n");
    omp_set_schedule(omp_sched_static | omp_sched_monotonic, 3);
    omp_get_schedule(&kind, &chunk);
    printf("schedule %x,%d\n", (unsigned)kind, chunk);
}

/* Uses more of the stack than there usually is. */
static int deep(int depth)
{
    volatile char room[1 << 20];
    room[0] = 1;
    return depth > 0 ? room[0] + deep(depth - 1) : room[0];
}

static void stacks(void)
{
    int sum = 0;
#pragma omp parallel num_threads(THREADS) reduction(+ : sum)
    sum += deep(20);
    printf("depths %d, stacks %zu\n", sum, kmp_get_stacksize_s());
}

static void affinity(void)
{
    char text[200];
    omp_capture_affinity(text, sizeof text, "thread %n: %{nothing} %7y");
    puts(text);
    omp_get_affinity_format(text, sizeof text);
    puts(text);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    kmp_set_stacksize_s(32 << 20);
    stacks();
    schedules();
    memory();
    atomics();
    all_memory();
    affinity();
    return 0;
}
