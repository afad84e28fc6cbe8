/* Tables of the kernel, for the parts of the model only. */
#ifndef APPS_KERNEL_PARTS_H
#define APPS_KERNEL_PARTS_H

#include "kernel.h"

enum {
    SETS = 256, WAYS = 8,           /* of the buffer cache */
    NAMES = 1024, CHAINS = 256,     /* of the name cache */
    INODES = 8192, BLOCKS = 32768,
    GROUPS = 16,                    /* of free blocks */
    DISKS = 40,                     /* of a node */
    OBJECT = 256, OBJECTS = 1024,   /* small memory: bytes, and how many of each node */
    IN_DIRECTORY = PAGE / 32,       /* names in a block */
    QUEUE = 32,                     /* words of a run queue */
};

enum call {
    CALL_FORK, CALL_EXEC, CALL_EXIT, CALL_WAIT, CALL_OPEN, CALL_CLOSE, CALL_STAT, CALL_CREAT, CALL_UNLINK, CALL_READ, CALL_WRITE,
    CALLS
};

struct latch {
    pthread_spinlock_t word;
    enum lock_class class;
};

struct list {
    struct latch latch;
    int first, used;
    long padding[13];
};

struct set {
    struct latch latch;
    long clock;
    int block[WAYS], users[WAYS];
    long used[WAYS];
    bool dirty[WAYS];
};

struct cached_name {
    int directory, inode, chained, newer, older;
    char name[NAME];
};

struct names {
    struct latch latch;
    int chain[CHAINS], newest, oldest;
    struct cached_name name[NAMES];
};

struct inode {
    pthread_mutex_t lock;
    int next, blocks, links;
    long used;
    int block[MOST_BLOCKS];
};

struct directory_entry {
    char name[NAME];
    int inode, padding[3];
};

struct frame {
    int next, node;
    long padding[7];
};

/* Free page frames, by node; vm_pagefreelock is the latch. */
struct free_frames {
    struct latch latch;
    long used;
    int first[MOST_NODES];
};

struct queue {
    struct latch latch;
    long changes, waiting[QUEUE];
};

extern int all_nodes;
extern bool by_node;
extern long disk_time;

/* Tables of the kernel: their pages are spread over the nodes. */
extern struct set *sets;
extern pthread_mutex_t *busy; /* by buffer */
extern char *buffers;
extern struct names *names;
extern struct inode *inodes;
extern struct list *free_inodes, *free_blocks, *free_processes;
extern int *next_block;
extern struct process *processes;
extern struct frame *frames;
extern struct free_frames *free_frames;

/* By node, or one of each. */
extern struct queue *queues[MOST_NODES];
extern struct list *objects[MOST_NODES];

extern char *pages;                 /* of processes */
extern char *disk;
extern pthread_mutex_t disk_busy[MOST_NODES * DISKS];

/* By node: the kernel's code that processes there execute; none if it is not fetched. */
extern char *text[MOST_NODES];

/* Bytes of it. */
size_t text_bytes(void);

/* For system calls: their time, locks, copies. */
void enter(enum call call);
void leave(void);
void lock(struct latch *latch);
void unlock(struct latch *latch);
void sleep_lock(pthread_mutex_t *mutex);
void copy(void *to, const void *from, size_t bytes);
void disk_wait(int block);

/* The first of a list of free things, whose numbers of the next one are `stride` bytes apart. */
int take(struct list *list, int *next, size_t stride);
void give_back(struct list *list, int *next, size_t stride, int number);

/* Small memory, of this node's. */
char *allocate(struct list **from);
void deallocate(struct list *from, char *object);

/* What the disk's controller does: the processors do not make these accesses. */
void transfer(char *to, const char *from);

int lookup(const char *const *path);
int block_of(int inode, int number, bool *add);
int get_buffer(int block, bool fresh);
void put_buffer(int buffer, bool written);

#endif
