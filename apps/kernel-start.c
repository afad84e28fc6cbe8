/* The model of a kernel: its tables, and the start of the system. */
#include "kernel-parts.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int all_nodes;
bool by_node;
long disk_time;

/* Tables of the kernel: their pages are spread over the nodes. */
struct set *sets;
pthread_mutex_t *busy; /* by buffer */
char *buffers;
struct names *names;
struct inode *inodes;
struct list *free_inodes, *free_blocks, *free_processes;
int *next_block;
struct process *processes;
struct frame *frames;
struct free_frames *free_frames;

/* By node, or one of each. */
struct queue *queues[MOST_NODES];
struct list *objects[MOST_NODES];

char *pages;                 /* of processes */
char *disk;
pthread_mutex_t disk_busy[MOST_NODES * DISKS];

long boot_time[MOST_NODES];

/* The kernel's memory, and what of it is given away. */
static char *memory;
static size_t given;

static void *table(size_t bytes)
{
    void *start = memory + given;
    given += (bytes + PAGE - 1) / PAGE * PAGE;
    return start;
}

static char *make_pages(size_t count)
{
    char *start = aligned_alloc(PAGE, count * PAGE);
    if (start == NULL)
        die("there is no memory for %zu pages", count);
    return start;
}

void bind_to_node(int node)
{
    if (all_nodes == 1)
        return;
    int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (processors < all_nodes)
        die("%d processors are less than %d nodes", processors, all_nodes);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int at = 0; at < processors; at++)
        if (node == ANY_NODE || at * all_nodes / processors == node)
            CPU_SET((size_t)at, &set);
    int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    if (error)
        die("pthread_setaffinity_np: %s", strerror(error));
}

/* The node of a page of the kernel. */
static int home_of(size_t page)
{
    return by_node ? (int)(page % (size_t)all_nodes) : 0;
}

/* The first access to a page decides where it is. */
static void touch(char *start, size_t count, int node, int (*home)(size_t page))
{
    for (size_t page = 0; page < count; page++)
        if (home(page) == node)
            (void)*(volatile char *)(start + page * PAGE);
}

/* Frames of processes are on all nodes whatever the kernel. */
static int home_of_frame(size_t page)
{
    return (int)(page % (size_t)all_nodes);
}

static void touch_all(int node, size_t buffer_count, size_t frame_count)
{
    touch(memory, given / PAGE, node, home_of);
    touch(buffers, buffer_count, node, home_of);
    touch(pages, frame_count, node, home_of_frame);
}

static void make_latch(struct latch *latch, enum lock_class class)
{
    pthread_spin_init(&latch->word, PTHREAD_PROCESS_PRIVATE);
    latch->class = class;
}

/* All of `count` are free, but the first `taken`. */
__attribute__((no_sanitize("thread")))
static void make_list(struct list *list, int *next, size_t stride, int count, int taken)
{
    make_latch(&list->latch, LOCK_OTHERS);
    list->first = taken;
    list->used = taken;
    for (int at = taken; at < count; at++)
        *(int *)((char *)next + (size_t)at * stride) = at + 1 < count ? at + 1 : -1;
}

/* Writes the tables before the system runs: these are not accesses of its processors. */
__attribute__((no_sanitize("thread")))
static void fill_tables(int slots, int frame_count)
{
    for (int set = 0; set < SETS; set++) {
        make_latch(&sets[set].latch, LOCK_OTHERS);
        sets[set].clock = 0;
        for (int way = 0; way < WAYS; way++) {
            sets[set].block[way] = -1, sets[set].users[way] = 0;
            sets[set].used[way] = 0, sets[set].dirty[way] = false;
            pthread_mutex_init(&busy[set * WAYS + way], NULL);
        }
    }
    make_latch(&names->latch, LOCK_NAMES);
    for (int chain = 0; chain < CHAINS; chain++)
        names->chain[chain] = -1;
    for (int name = 0; name < NAMES; name++) {
        names->name[name].directory = -1;
        names->name[name].newer = name - 1;
        names->name[name].older = name + 1 < NAMES ? name + 1 : -1;
    }
    names->newest = 0, names->oldest = NAMES - 1;
    for (int inode = 0; inode < INODES; inode++)
        pthread_mutex_init(&inodes[inode].lock, NULL);
    make_list(free_inodes, &inodes->next, sizeof *inodes, INODES, 1);
    /* Each group has blocks of its own: those with its number as the rest of a division. */
    for (int group = 0; group < GROUPS; group++) {
        make_latch(&free_blocks[group].latch, LOCK_OTHERS);
        free_blocks[group].first = group;
        free_blocks[group].used = 0;
    }
    for (int block = 0; block < BLOCKS; block++)
        next_block[block] = block + GROUPS < BLOCKS ? block + GROUPS : -1;
    make_list(free_processes, &processes->next, sizeof *processes, slots, 1);
    make_latch(&free_frames->latch, LOCK_PAGES);
    for (int node = 0; node < all_nodes; node++)
        free_frames->first[node] = -1;
    free_frames->used = 0;
    for (int frame = frame_count - 1; frame >= 0; frame--) {
        frames[frame].node = frame % all_nodes;
        int list = by_node ? frames[frame].node : 0;
        frames[frame].next = free_frames->first[list];
        free_frames->first[list] = frame;
    }
    for (int at = 0; at < all_nodes * DISKS; at++)
        pthread_mutex_init(&disk_busy[at], NULL);
}

/* Gives an inode blocks, which are filled, or are those of a directory without names. */
__attribute__((no_sanitize("thread")))
static void make_file(int inode, int blocks, void (*fill)(int block, char *data))
{
    struct list *list = &free_blocks[inode % GROUPS];
    for (int number = 0; number < blocks; number++) {
        int block = list->first;
        list->first = next_block[block];
        list->used++;
        inodes[inode].block[number] = block;
        for (long *word = (long *)(disk + (size_t)block * PAGE), at = 0; at < PAGE / 8; at++)
            word[at] = 0;
        if (fill != NULL)
            fill(number, disk + (size_t)block * PAGE);
    }
    inodes[inode].blocks = blocks;
    inodes[inode].links = 1;
    inodes[inode].used = 0;
}

static void make_root(void)
{
    make_file(0, 1, NULL);
}

__attribute__((no_sanitize("thread")))
int add_file(int directory, const char *name, int blocks, void (*fill)(int block, char *data))
{
    int inode = free_inodes->first;
    free_inodes->first = inodes[inode].next;
    free_inodes->used++;
    make_file(inode, blocks, fill);
    for (int number = 0; number < inodes[directory].blocks; number++) {
        struct directory_entry *entry =
            (struct directory_entry *)(disk + (size_t)inodes[directory].block[number] * PAGE);
        for (int at = 0; at < IN_DIRECTORY; at++)
            if (entry[at].name[0] == '\0') {
                for (int letter = 0; letter < NAME - 1 && name[letter]; letter++)
                    entry[at].name[letter] = name[letter];
                entry[at].inode = inode;
                return inode;
            }
    }
    die("a directory is full");
}

/* All pages are the caller's. */
static int here_only(size_t page)
{
    (void)page;
    return 0;
}

/* What a node has of its own; the caller is there. */
static void make_local(int node)
{
    size_t bytes = sizeof(struct queue) + PAGE + sizeof(struct list) + OBJECTS * OBJECT;
    char *own = make_pages((bytes + PAGE - 1) / PAGE);
    touch(own, (bytes + PAGE - 1) / PAGE, 0, home_of_frame);
    queues[node] = (struct queue *)own;
    objects[node] = (struct list *)(own + PAGE);
    make_latch(&queues[node]->latch, LOCK_QUEUES);
    make_list(objects[node], (int *)(objects[node] + 1), OBJECT, OBJECTS, 0);
}

/* The kernel's code for a node; the caller is there. */
static void make_text(int node, enum text fetched)
{
    size_t count = (text_bytes() + PAGE - 1) / PAGE;
    if (fetched == TEXT_OF_EACH_NODE || node == 0) {
        text[node] = make_pages(count);
        touch(text[node], count, 0, here_only);
    }
    for (int other = 1; node == 0 && fetched == TEXT_OF_NODE_0 && other < all_nodes; other++)
        text[other] = text[0];
}

void boot(int nodes, bool numa, enum text fetched, int slots, long disk_microseconds)
{
    all_nodes = nodes, by_node = numa, disk_time = disk_microseconds;
    int frame_count = slots * MOST_PAGES / 2 + 256 * nodes;
    size_t buffer_count = SETS * WAYS;
    size_t most = SETS * sizeof *sets + buffer_count * sizeof *busy + sizeof *names + INODES * sizeof *inodes +
                  sizeof *free_inodes * (GROUPS + 2) + BLOCKS * sizeof *next_block +
                  (size_t)slots * sizeof *processes + (size_t)frame_count * sizeof *frames + 16 * PAGE;
    memory = make_pages(most / PAGE + 1);
    buffers = make_pages(buffer_count);
    pages = make_pages((size_t)frame_count);
    disk = make_pages(BLOCKS);
    sets = table(SETS * sizeof *sets);
    busy = table(buffer_count * sizeof *busy);
    names = table(sizeof *names);
    inodes = table(INODES * sizeof *inodes);
    free_inodes = table(sizeof *free_inodes);
    free_blocks = table(GROUPS * sizeof *free_blocks);
    free_processes = table(sizeof *free_processes);
    next_block = table(BLOCKS * sizeof *next_block);
    processes = table((size_t)slots * sizeof *processes);
    frames = table((size_t)frame_count * sizeof *frames);
    free_frames = table(sizeof *free_frames);
    fill_tables(slots, frame_count);
    for (int node = nodes - 1; node >= 0; node--) {
        struct timespec start, end;
        bind_to_node(node);
        clock_gettime(CLOCK_MONOTONIC, &start);
        if (by_node || node == 0)
            make_local(node);
        if (fetched != TEXT_IS_NOT_FETCHED)
            make_text(node, fetched);
        touch_all(node, buffer_count, (size_t)frame_count);
        clock_gettime(CLOCK_MONOTONIC, &end);
        boot_time[node] = (end.tv_sec - start.tv_sec) * 1000000000L + end.tv_nsec - start.tv_nsec;
    }
    bind_to_node(ANY_NODE);
    current = processes;
    current->pages = 0;
    make_root();
}

struct in_use in_use(void)
{
    struct in_use all = {free_frames->used, free_processes->used, free_inodes->used, 0};
    for (int group = 0; group < GROUPS; group++)
        all.blocks += free_blocks[group].used;
    return all;
}
