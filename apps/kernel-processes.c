/* The model of a kernel: locks and their times, run queues, disks, memory, processes. */
#include "kernel-parts.h"

#include <sched.h>
#include <string.h>
#include <time.h>

__thread struct process *current;

static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

void lock(struct latch *latch)
{
    long start = now();
    pthread_spin_lock(&latch->word);
    current->profile.locks[latch->class] += now() - start;
}

void unlock(struct latch *latch)
{
    pthread_spin_unlock(&latch->word);
}

void sleep_lock(pthread_mutex_t *mutex)
{
    long start = now();
    pthread_mutex_lock(mutex);
    current->profile.waiting += now() - start;
}

void copy(void *to, const void *from, size_t bytes)
{
    long start = now();
    memcpy(to, from, bytes);
    current->profile.copies += now() - start;
}

static int here(void)
{
    unsigned node = 0;
    if (all_nodes > 1)
        getcpu(NULL, &node);
    return (int)node % all_nodes;
}

/* Accesses of a system call to memory of its own, which stand for all that it does beside the tables of this model. At 200 MHz and 2
 * cycles for each, a fork takes 0.25 ms, an exec 0.5 ms, an open 20 us: what systems of the time needed, roughly. */
static const int paths[CALLS] = {
    [CALL_FORK] = 25000, [CALL_EXEC] = 50000, [CALL_EXIT] = 10000, [CALL_WAIT] = 2000,
    [CALL_OPEN] = 2000,  [CALL_CLOSE] = 500,  [CALL_STAT] = 1500,  [CALL_CREAT] = 4000, [CALL_UNLINK] = 4000,
    [CALL_READ] = 1500,  [CALL_WRITE] = 2000,
};

/* A line of code has ten instructions, three of which make an access, and a system call executes it eight times, in loops and in
 * functions that it calls again. So an open has 2.6 KB of code, a fork 33 KB, and all calls together 137 KB. */
enum { TEXT_LINE = 32, OF_LINE = 24 };

char *text[MOST_NODES];

size_t text_bytes(void)
{
    size_t bytes = 0;
    for (int call = 0; call < CALLS; call++)
        bytes += (size_t)(paths[call] / OF_LINE + 1) * TEXT_LINE;
    return bytes;
}

/* Where the code of a system call begins. */
static volatile char *code_of(enum call call)
{
    char *code = text[here()];
    for (int before = 0; before < (int)call; before++)
        code += (paths[before] / OF_LINE + 1) * TEXT_LINE;
    return code;
}

void enter(enum call call)
{
    current->entered = now() - current->profile.waiting;
    if (text[0] == NULL) {
        for (int at = 0; at < paths[call] / 2; at++)
            current->area[at % U_AREA] += at;
        return;
    }
    volatile char *code = code_of(call);
    for (int at = 0; at < paths[call] / 2; at++) {
        if (at % (OF_LINE / 2) == 0) {
            (void)*code;
            code += TEXT_LINE;
        }
        current->area[at % U_AREA] += at;
    }
}

void leave(void)
{
    current->profile.kernel += now() - current->profile.waiting - current->entered;
}

/* A thread begins or ends to wait: its node's run queue changes. */
static void dispatch(void)
{
    struct queue *queue = queues[by_node ? here() : 0];
    lock(&queue->latch);
    queue->waiting[queue->changes++ % QUEUE] ^= (long)(current - processes);
    unlock(&queue->latch);
}

void disk_wait(int block)
{
    struct timespec time = {0, disk_time * 1000};
    pthread_mutex_t *one = &disk_busy[block % (all_nodes * DISKS)];
    dispatch();
    sleep_lock(one);
    long start = now();
    if (disk_time > 0)
        nanosleep(&time, NULL);
    current->profile.waiting += now() - start;
    pthread_mutex_unlock(one);
    dispatch();
}

int take(struct list *list, int *next, size_t stride)
{
    lock(&list->latch);
    int first = list->first;
    if (first < 0)
        die("a table of the kernel is full");
    list->first = *(int *)((char *)next + (size_t)first * stride);
    list->used++;
    unlock(&list->latch);
    return first;
}

void give_back(struct list *list, int *next, size_t stride, int number)
{
    lock(&list->latch);
    *(int *)((char *)next + (size_t)number * stride) = list->first;
    list->first = number;
    list->used--;
    unlock(&list->latch);
}

/* Small memory, of this node's. An object's number is its place; the first word of a free one is the next one's. */
char *allocate(struct list **from)
{
    *from = objects[by_node ? here() : 0];
    char *memory = (char *)(*from + 1);
    return memory + (size_t)take(*from, (int *)memory, OBJECT) * OBJECT;
}

void deallocate(struct list *from, char *object)
{
    char *memory = (char *)(from + 1);
    give_back(from, (int *)memory, OBJECT, (int)((object - memory) / OBJECT));
}

static char *get_page(void)
{
    int node = by_node ? here() : 0;
    lock(&free_frames->latch);
    for (int more = 1; free_frames->first[node] < 0 && more < all_nodes; more++)
        node = (node + 1) % all_nodes;
    int frame = free_frames->first[node];
    if (frame < 0)
        die("there are no page frames");
    free_frames->first[node] = frames[frame].next;
    frames[frame].next = -1;
    ++free_frames->used;
    unlock(&free_frames->latch);
    return pages + (size_t)frame * PAGE;
}

static void free_pages(void)
{
    while (current->pages > 0) {
        int frame = (int)((current->page[--current->pages] - pages) / PAGE);
        lock(&free_frames->latch);
        int node = by_node ? frames[frame].node : 0;
        frames[frame].next = free_frames->first[node];
        free_frames->first[node] = frame;
        --free_frames->used;
        unlock(&free_frames->latch);
    }
}

struct process *make_process(void)
{
    struct process *child = &processes[take(free_processes, &processes->next, sizeof *processes)];
    for (child->pages = 0; child->pages < 2; child->pages++) {
        child->page[child->pages] = get_page();
        if (child->pages < current->pages)
            copy(child->page[child->pages], current->page[child->pages], PAGE);
    }
    memset(&child->profile, 0, sizeof child->profile);
    return child;
}

struct process *sys_fork(void)
{
    enter(CALL_FORK);
    struct process *child = make_process();
    dispatch();
    leave();
    return child;
}

void sys_start(struct process *child)
{
    current = child;
}

void sys_exec(const char *const *path, int count)
{
    enter(CALL_EXEC);
    int inode = lookup(path);
    bool add = false;
    int block = inode < 0 ? -1 : block_of(inode, 0, &add);
    if (block < 0)
        die("there is no program %s", path[0]);
    int buffer = get_buffer(block, false);
    struct list *list;
    char *arguments = allocate(&list);
    copy(arguments + 8, buffers + (size_t)buffer * PAGE, OBJECT - 8);
    put_buffer(buffer, false);
    free_pages();
    while (current->pages < count) {
        char *page = get_page();
        memset(page, 0, PAGE);
        current->page[current->pages++] = page;
    }
    copy(current->page[0], arguments + 8, OBJECT - 8);
    deallocate(list, arguments);
    leave();
}

void sys_exit(void)
{
    enter(CALL_EXIT);
    free_pages();
    dispatch();
    leave();
}

void sys_wait(pthread_t thread, struct process *child)
{
    enter(CALL_WAIT);
    dispatch();
    long start = now();
    int error = pthread_join(thread, NULL);
    if (error)
        die("pthread_join: %s", strerror(error));
    current->profile.waiting += now() - start;
    current->profile.kernel += child->profile.kernel;
    current->profile.copies += child->profile.copies;
    for (int class = 0; class < LOCK_CLASSES; class++)
        current->profile.locks[class] += child->profile.locks[class];
    give_back(free_processes, &processes->next, sizeof *processes, (int)(child - processes));
    leave();
}
