/* Algorithms without the C library's locks: those that keep others out, and those that publish data to readers that do not wait. */
#include "../harness.h"
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- Locks: each protects a counter on another page, and its mirror --- */

static struct {
    _Alignas(PAGE) long counter;
    _Alignas(PAGE) long mirror;
} guarded;

/* The queue lock of Mellor-Crummey and Scott. */
struct waiter {
    _Alignas(PAGE) _Atomic(struct waiter *) next;
    atomic_bool waits;
};
static _Atomic(struct waiter *) last;
static struct waiter waiters[MAX_THREADS];

static void mcs_lock(int self)
{
    struct waiter *me = &waiters[self];
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->waits, true, memory_order_relaxed);
    struct waiter *before = atomic_exchange_explicit(&last, me, memory_order_acq_rel);
    if (!before)
        return;
    atomic_store_explicit(&before->next, me, memory_order_release);
    while (atomic_load_explicit(&me->waits, memory_order_acquire))
        sched_yield();
}

static void mcs_unlock(int self)
{
    struct waiter *me = &waiters[self], *expected = me;
    if (!atomic_load_explicit(&me->next, memory_order_acquire)) {
        if (atomic_compare_exchange_strong_explicit(&last, &expected, NULL, memory_order_release,
                                                    memory_order_relaxed))
            return;
        while (!atomic_load_explicit(&me->next, memory_order_acquire))
            sched_yield();
    }
    atomic_store_explicit(&atomic_load_explicit(&me->next, memory_order_relaxed)->waits, false, memory_order_release);
}

/* Peterson's, for the first two threads, with relaxed accesses and fences. */
static atomic_int wants[2], turn;

static void peterson_lock(int self)
{
    if (self > 1)
        return;
    atomic_store_explicit(&wants[self], 1, memory_order_relaxed);
    atomic_store_explicit(&turn, !self, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    while (atomic_load_explicit(&wants[!self], memory_order_relaxed) &&
           atomic_load_explicit(&turn, memory_order_relaxed) != self)
        sched_yield();
    atomic_thread_fence(memory_order_acquire);
}

static void peterson_unlock(int self)
{
    if (self < 2)
        atomic_store_explicit(&wants[self], 0, memory_order_release);
}

/* A lock that sleeps in the kernel by the system call itself: 0 free, 1 taken, 2 taken with sleepers. */
static atomic_int word;

static void futex_lock(int self)
{
    (void)self;
    int seen = 0;
    if (atomic_compare_exchange_strong(&word, &seen, 1))
        return;
    while (atomic_exchange(&word, 2) != 0)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static void futex_unlock(int self)
{
    (void)self;
    if (atomic_exchange(&word, 0) == 2)
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static const struct {
    void (*lock)(int self), (*unlock)(int self);
    int threads;
} locks[] = {{mcs_lock, mcs_unlock, MAX_THREADS}, {peterson_lock, peterson_unlock, 2}, {futex_lock, futex_unlock, MAX_THREADS}};
static int which;
static pthread_barrier_t start;

static long keep_out(int self)
{
    long violations = 0;
    pthread_barrier_wait(&start);
    for (long i = 0; i < iterations && self < locks[which].threads; i++) {
        locks[which].lock(self);
        violations += guarded.counter != guarded.mirror;
        guarded.counter++;
        guarded.mirror++;
        locks[which].unlock(self);
    }
    return violations;
}

/* --- Publication: thread 0 writes new versions, the others read the newest --- */

enum { WORDS = 40 };
struct version {
    long words[WORDS];
    struct version *older;
};
static _Atomic(struct version *) newest;

static struct version *make(long number)
{
    struct version *made = malloc(sizeof *made);
    for (int i = 0; i < WORDS; i++)
        made->words[i] = number;
    return made;
}

static long is_mixed(const struct version *v)
{
    long violations = 0;
    for (int i = 1; i < WORDS; i++)
        violations += v->words[i] != v->words[0];
    return violations;
}

/* Read-copy-update: readers say when they do not hold a version; the writer waits for that before it frees one. */
static struct {
    _Alignas(PAGE) atomic_long seen;
} readers[MAX_THREADS];
static atomic_long epoch;

static long read_copy_update(int self)
{
    long violations = 0;
    if (self > 0) {
        for (long version = 0; version < iterations;) {
            atomic_store(&readers[self].seen, atomic_load(&epoch));
            struct version *v = atomic_load_explicit(&newest, memory_order_acquire);
            violations += is_mixed(v) || v->words[0] < version;
            version = v->words[0];
            atomic_store_explicit(&readers[self].seen, LONG_MAX, memory_order_release);
        }
        return violations;
    }
    for (long i = 1; i <= iterations; i++) {
        struct version *old = atomic_exchange(&newest, make(i));
        long now = atomic_fetch_add(&epoch, 1) + 1;
        for (int k = 1; k < threads; k++)
            while (atomic_load(&readers[k].seen) < now)
                sched_yield();
        memset(old, 0x55 + (int)(i % 2), sizeof *old / 2);
        free(old);
    }
    return violations;
}

/* Hazard pointers: a reader names the version that it reads; the writer reuses only those that nobody names. */
static struct {
    _Alignas(PAGE) _Atomic(struct version *) pointer;
} hazards[MAX_THREADS];

static bool is_named(const struct version *v)
{
    for (int k = 1; k < threads; k++)
        if (atomic_load(&hazards[k].pointer) == v)
            return true;
    return false;
}

static long hazard_pointers(int self)
{
    long violations = 0;
    if (self > 0) {
        for (long version = 0; version < iterations;) {
            struct version *v = atomic_load(&newest);
            do {
                atomic_store(&hazards[self].pointer, v);
                struct version *again = atomic_load(&newest);
                if (again == v)
                    break;
                v = again;
            } while (true);
            violations += is_mixed(v) || v->words[0] < version;
            version = v->words[0];
            atomic_store_explicit(&hazards[self].pointer, NULL, memory_order_release);
        }
        return violations;
    }
    struct version *retired = NULL;
    for (long i = 1; i <= iterations; i++) {
        struct version *old = atomic_exchange(&newest, make(i));
        old->older = retired;
        retired = old;
        for (struct version **at = &retired; *at;) {
            struct version *v = *at;
            if (is_named(v)) {
                at = &v->older;
                continue;
            }
            *at = v->older;
            memset(v->words, 0x55 + (int)(i % 2), sizeof v->words / 2);
            free(v);
        }
    }
    return violations;
}

static long publish(long (*work)(int))
{
    atomic_store(&newest, make(0));
    for (int i = 0; i < threads; i++)
        atomic_store(&readers[i].seen, LONG_MAX);
    return run_threads(threads, work);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 60);
    EXPECT(0, pthread_barrier_init(&start, NULL, (unsigned)threads));
    for (which = 0; which < (int)(sizeof locks / sizeof *locks); which++) {
        guarded.counter = guarded.mirror = 0;
        long violations = run_threads(threads, keep_out);
        int inside = threads < locks[which].threads ? threads : locks[which].threads;
        EXPECT(iterations * inside, guarded.counter);
        if (violations)
            fail("lock %d: two threads were inside %ld times", which, violations);
    }
    long violations = publish(read_copy_update);
    return verdict(violations + publish(hazard_pointers), "a reader saw a version that was not whole or old");
}
