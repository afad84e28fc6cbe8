/* The classic litmus tests (shapes as in the diy and herd tools), on a machine of several nodes.
 *
 * Each line of `shapes` is one test: its threads, what they do in order, and the outcomes that C11 forbids. An outcome is what the loads and
 * exchanges read, thread by thread, and then what is left in x, y, z. What x86-TSO forbids is computed: all executions of the test on
 * a machine with a store buffer for each thread are tried, and an outcome that none of them has is a violation. (C11's
 * compilation for x86 is known to be right, so that what C11 forbids must be among it; the program checks that, too.)
 *
 * Operations: `x=1` store, `x` load, `x+` exchange for one more (reads the old value), F fence; behind it the order: r release, a acquire,
 * s sequentially consistent, b both (exchanges, fences), none: relaxed. `--only NAME` runs one test.
 */
#include "../harness.h"
#include <stdatomic.h>

enum { MOST_THREADS = 4, MOST_OPS = 6, MOST_READS = 8, VARIABLES = 3, BATCH = 10, LAYOUTS = 3 };

/* Name, threads separated by |, outcomes that C11 forbids (a dot stands for any value). */
static const struct {
    const char *name, *threads, *forbidden;
} shapes[] = {
    {"MP+rel+acq", "x=1 y=1r | ya x", "10"},
    {"MP+relaxed", "x=1 y=1 | y x", ""},
    {"MP+fences", "x=1 Fr y=1 | y Fa x", "10"},
    {"MP+sc", "x=1s y=1s | ys xs", "10"},
    {"MP+rmw", "x=1 y+b | y+b x", ".10"},
    {"MP+rel+rmw+acq", "x=1 y=1r | y+ | ya x", ".20"},
    {"SB+sc", "x=1s ys | y=1s xs", "00"},
    {"SB+fences", "x=1 Fs y | y=1 Fs x", "00"},
    {"SB+rel+acq", "x=1r ya | y=1r xa", ""},
    {"SB+rmw", "x+s ys | y+s xs", ".0.0"},
    {"SB+3+sc", "x=1s ys | y=1s zs | z=1s xs", "000"},
    {"LB+relaxed", "x y=1 | y x=1", ""},
    {"LB+rel+acq", "xa y=1r | ya x=1r", "11"},
    {"LB+sc", "xs y=1s | ys x=1s", "11"},
    {"LB+3+rel+acq", "xa y=1r | ya z=1r | za x=1r", "111"},
    {"S+rel+acq", "x=2 y=1r | ya x=1", "12"},
    {"S+sc", "x=2s y=1s | ys x=1s", "12"},
    {"S+fences", "x=2 Fr y=1 | y Fa x=1", "12"},
    {"R+sc", "x=1s y=1s | y=2s xs", "0.2"},
    {"R+fences", "x=1 Fs y=1 | y=2 Fs x", "0.2"},
    {"R+rel", "x=1r y=1r | y=2r xa", ""},
    {"2+2W+sc", "x=1s y=2s | y=1s x=2s", "11"},
    {"2+2W+fences", "x=1 Fs y=2 | y=1 Fs x=2", "11"},
    {"2+2W+relaxed", "x=1 y=2 | y=1 x=2", ""},
    {"WRC+rel+acq", "x=1r | xa y=1r | ya x", "110"},
    {"WRC+sc", "x=1s | xs y=1s | ys xs", "110"},
    {"WRC+fences", "x=1 | x Fb y=1 | y Fb x", "110"},
    {"RWC+sc", "x=1s | xs ys | y=1s xs", "100"},
    {"RWC+fences", "x=1 | x Fs y | y=1 Fs x", "100"},
    {"RWC+rel+acq", "x=1r | xa ya | y=1r xa", ""},
    {"WWC+rel+acq", "x=2r | xa y=1r | ya x=1r", "212"},
    {"WWC+sc", "x=2s | xs y=1s | ys x=1s", "212"},
    {"W+RWC+sc", "x=1s y=1s | ys zs | z=1s xs", "100"},
    {"W+RWC+fences", "x=1 Fr y=1 | y Fs z | z=1 Fs x", "100"},
    {"IRIW+rel+acq", "x=1r | y=1r | xa ya | ya xa", ""},
    {"IRIW+sc", "x=1s | y=1s | xs ys | ys xs", "1010"},
    {"IRIW+fences", "x=1 | y=1 | x Fs y | y Fs x", "1010"},
    {"ISA2+rel+acq", "x=1 y=1r | ya z=1r | za x", "110"},
    {"ISA2+sc", "x=1s y=1s | ys z=1s | zs xs", "110"},
    {"Z6.0+sc", "x=1s y=1s | ys z=1s | z=2s xs", "10..2"},
    {"Z6.1+sc", "x=1s y=1s | y=2s z=1s | zs x=2s", "112"},
    {"Z6.2+sc", "x=2s y=1s | ys z=1s | zs x=1s", "112"},
    {"Z6.2+rel+acq", "x=2 y=1r | ya z=1r | za x=1", "112"},
    {"Z6.3+sc", "x=1s y=1s | y=2s z=1s | zs xs", "10.2"},
    {"Z6.4+sc", "x=1s y=1s | y=2s zs | z=1s xs", "00.2"},
    {"Z6.5+sc", "x=1s y=1s | y=2s z=1s | z=2s xs", "0.22"},
    {"CoRR", "x=1 | x x", "10"},
    {"CoRR2", "x=1 | x=2 | x x | x x", "1221... 2112"},
    {"CoWW", "x=1 x=2 | x", ".1 .0"},
    {"CoRW", "x x=1", "1 .0"},
    {"CoRW1", "x x=1 | x=2", "1 22 .0"},
    {"CoRW2", "x=1 | x x=2", "11 2 .0"},
    {"CoWR", "x=1 x | x=2", "0 21"},
    {"RMW+RMW", "x+ | x+ | x+ | x+", "00 ..00 0.0 .0.0 ....1 ....2 ....3"},
    {"RMW+W", "x+ | x=2", "01 22 1"},
    {"RMW+release sequence", "y=1 x=4r | x+ x+ | xa y", "..40 ..50 ..60"},
};

enum kind { STORE, LOAD, RMW, FENCE };

struct op {
    enum kind kind;
    memory_order order;
    int variable, value;
};

struct test {
    const char *name, *forbidden;
    int threads, lengths[MOST_THREADS], first_read[MOST_THREADS + 1];
    struct op ops[MOST_THREADS][MOST_OPS];
};

/* --- the tests as they are written --- */

static memory_order order_of(char letter, enum kind kind)
{
    switch (letter) {
    case 'r':
        return memory_order_release;
    case 'a':
        return memory_order_acquire;
    case 'b':
        return memory_order_acq_rel;
    case 's':
        return memory_order_seq_cst;
    default:
        REQUIRE(kind != FENCE);
        return memory_order_relaxed;
    }
}

static struct op parse_op(const char **at)
{
    const char *s = *at;
    struct op op = {.variable = *s - 'x'};
    if (*s == 'F')
        op.kind = FENCE, op.variable = 0, s++;
    else if (*++s == '=')
        op.kind = STORE, op.value = s[1] - '0', s += 2;
    else if (*s == '+')
        op.kind = RMW, s++;
    else
        op.kind = LOAD;
    REQUIRE(op.variable >= 0 && op.variable < VARIABLES);
    op.order = order_of(*s, op.kind);
    while (*s && *s != ' ')
        s++;
    *at = s;
    return op;
}

static struct test parse_test(const char *name, const char *text, const char *forbidden)
{
    struct test t = {.name = name, .forbidden = forbidden};
    for (; *text; text += *text != '\0') {
        if (*text == '|')
            t.threads++, t.first_read[t.threads] = t.first_read[t.threads - 1];
        else if (*text != ' ') {
            struct op op = parse_op(&text);
            REQUIRE(t.lengths[t.threads] < MOST_OPS);
            t.ops[t.threads][t.lengths[t.threads]++] = op;
            if (!*text)
                break;
        }
    }
    t.threads++;
    for (int i = 0; i < t.threads; i++) {
        int reads = 0;
        for (int k = 0; k < t.lengths[i]; k++)
            reads += t.ops[i][k].kind == LOAD || t.ops[i][k].kind == RMW;
        t.first_read[i + 1] = t.first_read[i] + reads;
    }
    return t;
}

/* --- outcomes --- */

/* What was read and what is left, a digit each. */
struct outcome {
    char digits[MOST_READS + VARIABLES + 1];
};

static struct outcome outcome_of(const struct test *t, const char *reads, const char *left)
{
    struct outcome o = {{0}};
    int count = t->first_read[t->threads];
    for (int i = 0; i < count; i++)
        o.digits[i] = (char)('0' + reads[i]);
    for (int i = 0; i < VARIABLES; i++)
        o.digits[count + i] = (char)('0' + left[i]);
    return o;
}

/* Patterns may leave out what is left in the last variables. */
static bool is_forbidden(const struct test *t, struct outcome o)
{
    for (const char *p = t->forbidden; *p; p += strspn(p, " ")) {
        size_t length = strcspn(p, " ");
        bool fits = true;
        for (size_t i = 0; i < length; i++)
            fits &= i < strlen(o.digits) && (p[i] == '.' || p[i] == o.digits[i]);
        if (fits)
            return true;
        p += length;
    }
    return false;
}

/* --- x86-TSO --- */

struct machine {
    signed char counter[MOST_THREADS], memory[VARIABLES], reads[MOST_READS];
    struct {
        signed char count, variable[MOST_OPS], value[MOST_OPS];
    } buffer[MOST_THREADS];
};

static struct outcome *allowed;
static int allowed_count;

static bool is_allowed(struct outcome o)
{
    for (int i = 0; i < allowed_count; i++)
        if (strcmp(allowed[i].digits, o.digits) == 0)
            return true;
    return false;
}

static void write_oldest(struct machine *m, int thread)
{
    m->memory[m->buffer[thread].variable[0]] = m->buffer[thread].value[0];
    m->buffer[thread].count--;
    memmove(m->buffer[thread].variable, m->buffer[thread].variable + 1, MOST_OPS - 1);
    memmove(m->buffer[thread].value, m->buffer[thread].value + 1, MOST_OPS - 1);
}

/* One instruction. False if the thread must wait until its buffer is empty. */
static bool execute(const struct test *t, struct machine *m, int thread)
{
    struct op op = t->ops[thread][(int)m->counter[thread]];
    bool empty = m->buffer[thread].count == 0;
    int read = t->first_read[thread];
    for (int k = 0; k < m->counter[thread]; k++)
        read += t->ops[thread][k].kind == LOAD || t->ops[thread][k].kind == RMW;
    /* A sequentially consistent store is an exchange, such a fence waits for the buffer; other fences are no instructions. */
    if ((op.kind == RMW || ((op.kind == STORE || op.kind == FENCE) && op.order == memory_order_seq_cst)) && !empty)
        return false;
    if (op.kind == RMW) {
        m->reads[read] = m->memory[op.variable]++;
    } else if (op.kind == STORE && op.order == memory_order_seq_cst) {
        m->memory[op.variable] = (signed char)op.value;
    } else if (op.kind == STORE) {
        int last = m->buffer[thread].count++;
        m->buffer[thread].variable[last] = (signed char)op.variable;
        m->buffer[thread].value[last] = (signed char)op.value;
    } else if (op.kind == LOAD) {
        signed char value = m->memory[op.variable];
        for (int k = 0; k < m->buffer[thread].count; k++)
            if (m->buffer[thread].variable[k] == op.variable)
                value = m->buffer[thread].value[k];
        m->reads[read] = value;
    }
    m->counter[thread]++;
    return true;
}

static void explore(const struct test *t, struct machine m)
{
    bool ended = true;
    for (int i = 0; i < t->threads; i++) {
        if (m.buffer[i].count > 0) {
            struct machine next = m;
            write_oldest(&next, i);
            explore(t, next);
            ended = false;
        }
        if (m.counter[i] < t->lengths[i]) {
            struct machine next = m;
            if (execute(t, &next, i))
                explore(t, next);
            ended = false;
        }
    }
    struct outcome o = outcome_of(t, (char *)m.reads, (char *)m.memory);
    if (ended && !is_allowed(o)) {
        allowed = realloc(allowed, sizeof *allowed * (size_t)(allowed_count + 1));
        allowed[allowed_count++] = o;
        if (is_forbidden(t, o))
            fail("%s: x86-TSO allows %s, which C11 is said to forbid", t->name, o.digits);
    }
}

/* --- the real machine --- */

/* Values of a round are above those of all rounds before, so that variables need no reset: each round has room for 8 values. */
enum { ROOM = 8 };

static struct test current;
static long rounds;
static _Atomic(long) *where[LAYOUTS][BATCH][VARIABLES];
static struct {
    _Alignas(PAGE) char reads[BATCH][MOST_READS];
} seen[MOST_THREADS];
static pthread_barrier_t barrier;
static struct outcome bad;

static int decode(long value, long base)
{
    return value < base ? 0 : (int)(value - base);
}

static long bump(_Atomic(long) *at, long base, memory_order order)
{
    long old = atomic_load_explicit(at, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(at, &old, (old < base ? base : old) + 1, order,
                                                  memory_order_relaxed))
        ;
    return old;
}

static void run_once(int role, long base, _Atomic(long) *const *variables, char *reads)
{
    for (int k = 0; k < current.lengths[role]; k++) {
        const struct op *op = &current.ops[role][k];
        _Atomic(long) *at = variables[op->variable];
        /* An order that is no constant would count as sequentially consistent for the compiler. */
#define WITH(kind, order, call)                                                                    \
    case (kind) * 8 + (order):                                                                     \
        call;                                                                                      \
        break;
        switch (op->kind * 8 + op->order) {
            WITH(STORE, memory_order_relaxed, atomic_store_explicit(at, base + op->value, memory_order_relaxed))
            WITH(STORE, memory_order_release, atomic_store_explicit(at, base + op->value, memory_order_release))
            WITH(STORE, memory_order_seq_cst, atomic_store_explicit(at, base + op->value, memory_order_seq_cst))
            WITH(LOAD, memory_order_relaxed, *reads++ = (char)decode(atomic_load_explicit(at, memory_order_relaxed), base))
            WITH(LOAD, memory_order_acquire, *reads++ = (char)decode(atomic_load_explicit(at, memory_order_acquire), base))
            WITH(LOAD, memory_order_seq_cst, *reads++ = (char)decode(atomic_load_explicit(at, memory_order_seq_cst), base))
            WITH(RMW, memory_order_relaxed, *reads++ = (char)decode(bump(at, base, memory_order_relaxed), base))
            WITH(RMW, memory_order_acq_rel, *reads++ = (char)decode(bump(at, base, memory_order_acq_rel), base))
            WITH(RMW, memory_order_seq_cst, *reads++ = (char)decode(bump(at, base, memory_order_seq_cst), base))
            WITH(FENCE, memory_order_acquire, atomic_thread_fence(memory_order_acquire))
            WITH(FENCE, memory_order_release, atomic_thread_fence(memory_order_release))
            WITH(FENCE, memory_order_acq_rel, atomic_thread_fence(memory_order_acq_rel))
            WITH(FENCE, memory_order_seq_cst, atomic_thread_fence(memory_order_seq_cst))
        default:
            abort();
        }
    }
}

static long check_batch(long first, int layout)
{
    long violations = 0;
    for (int i = 0; i < BATCH; i++) {
        char reads[MOST_READS], left[VARIABLES];
        for (int role = 0; role < current.threads; role++)
            memcpy(reads + current.first_read[role], seen[role].reads[i],
                   (size_t)(current.first_read[role + 1] - current.first_read[role]));
        for (int v = 0; v < VARIABLES; v++)
            left[v] = (char)decode(atomic_load(where[layout][i][v]), (first + i) * ROOM);
        struct outcome o = outcome_of(&current, reads, left);
        if (!is_allowed(o)) {
            violations++;
            bad = o;
        }
    }
    return violations;
}

static long work(int self)
{
    long violations = 0;
    uint32_t state = (uint32_t)self * 77 + 1;
    for (long batch = 0; batch * BATCH < rounds; batch++) {
        long first = batch * BATCH + 1;
        int layout = (int)(batch % LAYOUTS);
        /* Each thread has each role by turns, so that roles are on one node in some batches and on several in others. */
        int role = (int)((self + batch / LAYOUTS) % current.threads);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < BATCH; i++) {
            for (uint32_t wait = next_random(&state) % 200; wait > 0; wait--)
                __builtin_ia32_pause();
            run_once(role, (first + i) * ROOM, where[layout][i], seen[role].reads[i]);
        }
        pthread_barrier_wait(&barrier);
        if (self == 0)
            violations += check_batch(first, layout);
    }
    return violations;
}

/* Each variable on a page of its own; all on one page; the first and the last together. */
static void lay_out(void)
{
    char *pages = aligned_alloc(PAGE, (size_t)PAGE * BATCH * VARIABLES * LAYOUTS);
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int i = 0; i < BATCH; i++)
            for (int v = 0; v < VARIABLES; v++) {
                int page = layout == 0 ? v : layout == 1 ? 0 : v % 2;
                char *at = pages + (size_t)PAGE * (size_t)((layout * BATCH + i) * VARIABLES + page);
                where[layout][i][v] = (void *)(at + v * 64);
                atomic_init(where[layout][i][v], 0);
            }
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    if (argc > 2 && strcmp(argv[1], "--only") == 0)
        only = argv[2], argv[2] = argv[0], argv += 2, argc -= 2;
    parse(argc, argv, MOST_THREADS, 60);
    rounds = iterations;
    lay_out();
    bool any = false;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (only && strcmp(only, shapes[i].name) != 0)
            continue;
        any = true;
        current = parse_test(shapes[i].name, shapes[i].threads, shapes[i].forbidden);
        allowed_count = 0;
        struct machine start;
        memset(&start, 0, sizeof start);
        explore(&current, start);
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int k = 0; k < BATCH; k++)
                for (int v = 0; v < VARIABLES; v++)
                    atomic_store(where[layout][k][v], 0);
        EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)current.threads));
        long violations = run_threads(current.threads, work);
        if (violations)
            fail("%s: %s %ld times, which %s forbids", current.name, bad.digits, violations,
                 is_forbidden(&current, bad) ? "C11" : "x86-TSO");
        EXPECT(0, pthread_barrier_destroy(&barrier));
    }
    if (!any)
        fail("there is no test %s", only);
    return pass();
}
