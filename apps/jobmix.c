/* Many users who develop software: a model of the multi-user benchmarks SDET and AIM VII.
 *
 * Each user is a shell that runs scripts. A script is commands such as cp, grep, sort, make and rm, in an order of its own; each
 * command is a process that the shell creates and waits for, on the kernel of kernel.h. Threads stand for processes. More than
 * half of the time is the kernel's.
 *
 * What a command finds in its files depends on the script only, so the sum over all scripts does not depend on the number of
 * users. With -c, everything that processes had must have been given back.
 *
 * Beside the time, it prints on standard error where processors' time went, in nanoseconds, and for how long each node
 * was at work at the start.
 */
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct option_spec specs[] = {
    {'n', "scripts, of all users", 16, 192, 1, 1000000, 0},
    {'k', "nodes of the machine", 1, 1, 1, MOST_NODES, 0},
    {'l', "kernel for CC-NUMA: 1; for SMP: 0", 1, 1, 0, 1, 0},
    {'b', "users are bound to nodes, by turns: 1; or not: 0", 0, 0, 0, 1, 0},
    {'d', "time of a disk, in microseconds", 0, 300, 0, 1000000, 0},
    {'x', "the kernel's code is not fetched: 0; fetched from node 0: 1; from each node: 2", 0, 0, 0, 2, 0},
};
static struct app app = {"jobmix", "users who run commands on a model of a UNIX kernel", specs, 6, NULL, NULL};

enum {
    SOURCES = 64,       /* files that all users read */
    SOURCE_BLOCKS = 3,  /* of the longest */
    RECORD = 16,        /* bytes of a record of sort */
    WIDTH = 64,         /* of a line of format */
    STATS = 6,          /* files that list and make look at */
    PASSES = 20,        /* of a command over a block */
    TABLE_PAGES = 4,    /* of the symbols of compile */
    COMMANDS = 8,       /* of a script in an order of its own */
};

struct job;
typedef long command(struct job *job);

/* A process that runs a command. */
struct job {
    command *run;
    const char *program;
    int pages;
    int source;             /* a file that all users read */
    int directory;          /* the user's */
    const char *home, *from, *to;
    long seed, result;
    struct process *process;
};

static char source_name[SOURCES][NAME], (*home_name)[NAME];
static int *home_inode;
static struct profile total;
static pthread_mutex_t total_lock = PTHREAD_MUTEX_INITIALIZER;
static long *of_script;
static struct process **shells; /* which are there from the beginning */

static void *process_main(void *argument)
{
    struct job *job = argument;
    sys_start(job->process);
    sys_exec((const char *const[]){"usr", "bin", job->program, NULL}, job->pages);
    job->result = job->run(job);
    sys_exit();
    return NULL;
}

static void start(struct job *job, pthread_t *thread)
{
    job->process = sys_fork();
    int error = pthread_create(thread, NULL, process_main, job);
    if (error)
        die("pthread_create: %s", strerror(error));
}

/* Runs a command as a process, and waits for it. */
static long run(struct job *job)
{
    pthread_t thread;
    start(job, &thread);
    sys_wait(thread, job->process);
    return job->result;
}

static int open_source(const struct job *job)
{
    int inode = sys_open((const char *const[]){"usr", "src", source_name[job->source], NULL});
    if (inode < 0)
        die("there is no source %d", job->source);
    return inode;
}

static int open_own(const struct job *job, const char *name)
{
    int inode = sys_open((const char *const[]){"home", job->home, name, NULL});
    if (inode < 0)
        die("there is no file %s", name);
    return inode;
}

static long command_copy(struct job *job)
{
    int from = open_source(job), to = sys_creat(job->directory, job->to), block = 0;
    for (; sys_read(from, block, current->page[1]); block++)
        sys_write(to, block, current->page[1]);
    sys_close(from);
    return block;
}

/* How often a word that depends on the script begins in a source. */
static long command_search(struct job *job)
{
    int from = open_source(job);
    char letter = (char)('a' + job->seed % 22);
    long found = 0;
    for (int block = 0; sys_read(from, block, current->page[1]); block++) {
        const char *text = current->page[1];
        for (int pass = 0; pass < PASSES; pass++)
            for (int at = 1; at < PAGE; at++)
                found += text[at] == letter + pass % 4 && text[at - 1] == ' ';
    }
    sys_close(from);
    return found;
}

/* Puts the numbers of records into order, by the bytes from a column on. */
static void sort(short *order, const char *text, int column)
{
    for (int at = 0; at < PAGE / RECORD; at++)
        order[at] = (short)at;
    for (int gap = 109; gap > 0; gap = gap == 1 ? 0 : (gap * 5 - 1) / 11)
        for (int at = gap; at < PAGE / RECORD; at++) {
            short record = order[at];
            const char *key = text + record * RECORD;
            int place = at;
            for (; place >= gap; place -= gap) {
                const char *other = text + order[place - gap] * RECORD;
                int byte = column;
                while (byte < RECORD - 1 && other[byte] == key[byte])
                    byte++;
                if (other[byte] < key[byte] || (other[byte] == key[byte] && order[place - gap] < record))
                    break;
                order[place] = order[place - gap];
            }
            order[place] = record;
        }
}

/* Sorts the records of the first block of a file by each of some columns. */
static long command_sort(struct job *job)
{
    int from = open_own(job, job->from), to = sys_creat(job->directory, job->to);
    char *text = current->page[1], *sorted = current->page[2];
    short *order = (short *)current->page[3];
    long sum = 0;
    sys_read(from, 0, text);
    for (int column = 0; column < PASSES; column++)
        sort(order, text, column % RECORD);
    for (int at = 0; at < PAGE / RECORD; at++) {
        memcpy(sorted + at * RECORD, text + order[at] * RECORD, RECORD);
        sum += at * sorted[at * RECORD];
    }
    sys_write(to, 0, sorted);
    sys_close(from);
    return sum;
}

/* Fills lines with words, as nroff does. */
static long command_format(struct job *job)
{
    int from = open_own(job, job->from), to = sys_creat(job->directory, job->to), block = 0;
    long lines = 0;
    for (; sys_read(from, block, current->page[1]); block++) {
        const char *text = current->page[1];
        char *line = current->page[2];
        for (int width = WIDTH - PASSES / 2; width < WIDTH; width++) {
            int column = 0;
            for (int at = 0; at < PAGE; at++) {
                line[at] = text[at];
                if (++column > width && text[at] == ' ') {
                    line[at] = '\n';
                    column = 0;
                    lines++;
                }
            }
        }
        sys_write(to, block, line);
    }
    sys_close(from);
    return lines;
}

static long look_at(long seed)
{
    long blocks = 0;
    for (int file = 0; file < STATS; file++)
        blocks += sys_stat((const char *const[]){"usr", "src", source_name[(seed + file * 5) % SOURCES], NULL});
    return blocks;
}

static long command_list(struct job *job)
{
    return look_at(job->seed);
}

/* Enters the words of a block in the table; how many were not there. */
static long enter_symbols(const char *text)
{
    const unsigned long slots = PAGE / 8;
    unsigned long word = 0;
    long symbols = 0;
    for (int at = 0; at < PAGE; at++) {
        if (text[at] != ' ') {
            word = word * 131 + (unsigned char)text[at];
            continue;
        }
        unsigned long place = word % (TABLE_PAGES * slots), *slot;
        int probes = 0;
        do {
            slot = (unsigned long *)current->page[3 + place / slots] + place % slots;
            place = (place + 1) % (TABLE_PAGES * slots);
        } while (*slot != 0 && *slot != word && ++probes < 8);
        symbols += *slot == 0;
        *slot = word;
        word = 0;
    }
    return symbols;
}

/* Counts the words of a source in a table of symbols, and writes an object file. */
static long command_compile(struct job *job)
{
    int from = open_source(job), to = sys_creat(job->directory, job->to);
    long symbols = 0;
    for (int block = 0; sys_read(from, block, current->page[1]); block++)
        for (int pass = 0; pass < PASSES / 2; pass++)
            symbols += enter_symbols(current->page[1]);
    sys_write(to, 0, current->page[3]);
    sys_close(from);
    return symbols;
}

/* Looks at files, and compiles two at the same time. */
static long command_make(struct job *job)
{
    long result = look_at(job->seed);
    struct job parts[2];
    pthread_t compilers[2];
    for (int part = 0; part < 2; part++) {
        parts[part] = *job;
        parts[part].run = command_compile;
        parts[part].program = "cc";
        parts[part].pages = 3 + TABLE_PAGES;
        parts[part].source = (job->source + part) % SOURCES;
        parts[part].to = part ? "b.o" : "a.o";
        start(&parts[part], &compilers[part]);
    }
    for (int part = 0; part < 2; part++) {
        sys_wait(compilers[part], parts[part].process);
        result += parts[part].result * (part + 1);
    }
    return result;
}

static long command_remove(struct job *job)
{
    static const char *const files[] = {"copy", "sorted", "text", "a.o", "b.o", "c.o"};
    int count = sizeof files / sizeof *files;
    for (int file = 0; file < count; file++)
        sys_unlink(job->directory, files[file]);
    return count;
}

static const struct {
    command *run;
    const char *program;
    int pages;
    const char *to;
} mix[COMMANDS] = {
    {command_search, "grep", 6, NULL}, {command_sort, "sort", 10, "sorted"},       {command_list, "ls", 5, NULL},
    {command_make, "make", 8, NULL},   {command_compile, "cc", 3 + TABLE_PAGES, "c.o"}, {command_search, "grep", 6, NULL},
    {command_list, "find", 5, NULL},   {command_format, "nroff", 12, "text"},
};

static long run_script(long script, int user)
{
    struct random random = {(uint64_t)script * 7919 + 1};
    for (int skipped = 0; skipped < 4; skipped++)
        random_bits(&random);
    struct job job = {.directory = home_inode[user], .home = home_name[user], .from = "copy"};
    job.source = (int)(random_bits(&random) % SOURCES);
    job.run = command_copy, job.program = "cp", job.pages = 4, job.to = "copy";
    long result = run(&job);
    int order[COMMANDS];
    for (int at = 0; at < COMMANDS; at++) {
        int other = (int)(random_bits(&random) % (unsigned)(at + 1));
        order[at] = order[other];
        order[other] = at;
    }
    for (int at = 0; at < COMMANDS; at++) {
        job.run = mix[order[at]].run, job.program = mix[order[at]].program;
        job.pages = mix[order[at]].pages, job.to = mix[order[at]].to;
        job.source = (int)(random_bits(&random) % SOURCES);
        job.seed = (long)random_bits(&random);
        result = result * 31 + run(&job);
    }
    job.run = command_remove, job.program = "rm", job.pages = 3;
    return result * 31 + run(&job);
}

static void user(int self)
{
    if (specs[3].value)
        bind_to_node(self % (int)specs[1].value);
    struct process *shell = shells[self];
    sys_start(shell);
    for (long script = self; script < specs[0].value; script += threads)
        of_script[script] = run_script(script, self);
    sys_exit();
    pthread_mutex_lock(&total_lock);
    total.kernel += shell->profile.kernel;
    total.copies += shell->profile.copies;
    for (int class = 0; class < LOCK_CLASSES; class++)
        total.locks[class] += shell->profile.locks[class];
    pthread_mutex_unlock(&total_lock);
}

/* Words of random letters; the same in each run. */
__attribute__((no_sanitize("thread")))
static void fill(int block, char *data)
{
    static uint64_t state = 12345;
    for (int at = 0; at < PAGE; at++) {
        state = state * 6364136223846793005u + 1442695040888963407u + (uint64_t)block;
        unsigned number = (unsigned)(state >> 40);
        data[at] = number % 6 == 0 ? ' ' : (char)('a' + number / 6 % 26);
    }
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    int nodes = (int)specs[1].value;
    boot(nodes, specs[2].value, (enum text)specs[5].value, threads * 4 + 8, specs[4].value);
    int usr = add_file(0, "usr", 1, NULL), homes = add_file(0, "home", MOST_BLOCKS, NULL);
    int bin = add_file(usr, "bin", 1, NULL), src = add_file(usr, "src", 1, NULL);
    static const char *const programs[] = {"cp", "grep", "sort", "ls", "find", "make", "cc", "nroff", "rm"};
    for (size_t program = 0; program < sizeof programs / sizeof *programs; program++)
        add_file(bin, programs[program], 1, fill);
    for (int source = 0; source < SOURCES; source++) {
        snprintf(source_name[source], NAME, "file%d.c", source);
        add_file(src, source_name[source], 1 + source % SOURCE_BLOCKS, fill);
    }
    home_name = must_alloc((size_t)threads * sizeof *home_name);
    home_inode = must_alloc((size_t)threads * sizeof *home_inode);
    for (int number = 0; number < threads; number++) {
        snprintf(home_name[number], NAME, "u%d", number);
        home_inode[number] = add_file(homes, home_name[number], 1, NULL);
    }
    of_script = must_alloc((size_t)specs[0].value * sizeof *of_script);
    struct in_use before = in_use();
    shells = must_alloc((size_t)threads * sizeof(struct process *));
    for (int number = 0; number < threads; number++)
        shells[number] = make_process();
    run_team(MAIN_WAITS, user);
    struct in_use after = in_use();

    long sum = 0;
    for (long script = 0; script < specs[0].value; script++)
        sum = (long)((unsigned long)sum * 7 + (unsigned long)of_script[script]);
    fprintf(stderr, "profile: kernel %ld copies %ld names %ld pages %ld queues %ld others %ld\n", total.kernel,
            total.copies, total.locks[LOCK_NAMES], total.locks[LOCK_PAGES], total.locks[LOCK_QUEUES],
            total.locks[LOCK_OTHERS]);
    fprintf(stderr, "boot:");
    for (int node = 0; node < nodes; node++)
        fprintf(stderr, " %ld", boot_time[node]);
    fprintf(stderr, "\n");
    check(after.pages == 0 && after.inodes == before.inodes && after.blocks == before.blocks,
          "page frames, files and blocks are free again");
    check(after.processes == before.processes + threads, "only the shells are left");
    printf("result: %ld scripts, sum %016lx\n", specs[0].value, (unsigned long)sum);
    return 0;
}
