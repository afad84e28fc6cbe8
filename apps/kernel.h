/* A model of a UNIX kernel for jobmix.c: what system calls do to its tables, with real locks and real copies.
 *
 * Threads stand for processes. A process's memory is page frames of the kernel's pool; files are blocks of a simulated disk behind a
 * buffer cache; names are looked up in a name cache (dnlc) before directories are read. As in UnixWare 7, one spin lock is about
 * all free page frames (vm_pagefreelock) and one about the name cache. The kernel for CC-NUMA has its run queues, free page frames
 * and small objects by node, and its tables on all nodes by turns, a page each; the kernel for SMP has one of each, and its tables
 * where it has booted. Its code is fetched if that is asked for: system calls read memory that stands for it.
 */
#ifndef APPS_KERNEL_H
#define APPS_KERNEL_H

#include "common.h"

enum {
    MOST_NODES = 16,
    PAGE = 4096,        /* bytes of a page and of a block */
    NAME = 16,          /* bytes of a name, with its end */
    MOST_PAGES = 20,    /* of a process */
    MOST_BLOCKS = 8,    /* of a file */
    U_AREA = 128,       /* words */
};

/* Which spin locks time is spent in. */
enum lock_class { LOCK_NAMES, LOCK_PAGES, LOCK_QUEUES, LOCK_OTHERS, LOCK_CLASSES };

/* Nanoseconds of a process and of those that it has waited for. */
struct profile {
    long kernel;              /* in system calls, without waiting */
    long locks[LOCK_CLASSES]; /* to get spin locks */
    long copies;              /* to copy between the kernel and processes */
    long waiting;             /* for disks, locks that put to sleep, and children */
};

struct process {
    int next;                 /* free slot */
    int pages;
    char *page[MOST_PAGES];
    long entered;
    struct profile profile;
    long area[U_AREA];        /* what system calls work on beside tables */
};

/* The process that the thread stands for. */
extern __thread struct process *current;

/* Whether processors fetch the kernel's code: not at all, from where the kernel has booted, or from a copy on each node. */
enum text { TEXT_IS_NOT_FETCHED, TEXT_OF_NODE_0, TEXT_OF_EACH_NODE };

/* Builds tables for so many processes at a time, file system and pools. `numa`: the kernel for CC-NUMA. A disk takes `disk`
 * microseconds. The caller becomes the first process. */
void boot(int nodes, bool numa, enum text fetched, int processes, long disk);

/* Lets this thread, and those that it creates, run on processors of this node only (UnixWare's cg_bind), or on all. */
enum { ANY_NODE = -1 };
void bind_to_node(int node);

/* For how long the caller was on each node during boot(), in nanoseconds. */
extern long boot_time[MOST_NODES];

/* Adds a file with these blocks to the disk before the system is used; its inode. One without `fill` is a directory. */
int add_file(int directory, const char *name, int blocks, void (*fill)(int block, char *data));

/* A process that is there when the system begins to be used: its slot, with two pages. */
struct process *make_process(void);

/* System calls. Inodes and directories are numbers; the root is 0. */
struct process *sys_fork(void);                      /* its slot, with copies of two pages */
void sys_start(struct process *child);               /* the calling thread stands for it from now on */
void sys_exec(const char *const *path, int pages);   /* new memory: pages with zeros */
void sys_exit(void);
void sys_wait(pthread_t thread, struct process *child);
int sys_open(const char *const *path);               /* -1: no such file */
void sys_close(int inode);
int sys_stat(const char *const *path);               /* blocks, or -1 */
int sys_creat(int directory, const char *name);
void sys_unlink(int directory, const char *name);
bool sys_read(int inode, int block, char *to);       /* false: there are not so many */
void sys_write(int inode, int block, const char *from);

/* Pages, slots, inodes and blocks that are in use. */
struct in_use {
    long pages, processes, inodes, blocks;
};
struct in_use in_use(void);

#endif
