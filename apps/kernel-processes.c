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

void enter(int path)
{
    current->entered = now() - current->profile.waiting;
    for (int at = 0; at < path / 2; at++)
        current->area[at % U_AREA] += at;
}

void leave(void)
{
    current->profile.kernel += now() - current->profile.waiting - current->entered;
}

static int here(void)
{
    unsigned node = 0;
    if (all_nodes > 1)
        getcpu(NULL, &node);
    return (int)node % all_nodes;
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
    enter(PATH_FORK);
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
    enter(PATH_EXEC);
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
    enter(PATH_EXIT);
    free_pages();
    dispatch();
    leave();
}

void sys_wait(pthread_t thread, struct process *child)
{
    enter(PATH_WAIT);
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
