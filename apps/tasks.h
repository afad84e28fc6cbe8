/* Tasks in queues, one for each thread of the team, each with a lock of its own. A thread that has no task left steals
 * from the others. */
#ifndef APPS_TASKS_H
#define APPS_TASKS_H

#include <stdbool.h>

/* What it means is the program's business. */
struct task {
    long kind;
    void *a, *b;
};

/* Makes empty queues for all threads of the team; before run_team(). */
void tasks_make(void);

/* Puts a task into the queue of the thread `to`. Only the thread itself, or all before a barrier, may call this. */
void tasks_put(int to, const struct task *task);

/* Takes the newest task of the thread `self`, or the oldest one of another thread. Waits while there is none and a
 * thread works on a task, which may make more. False, for all threads, when all tasks are done. */
bool tasks_take(int self, struct task *task);

/* Makes tasks_put() possible again after tasks_take() has returned false to all; one thread calls it between two
 * barriers. */
void tasks_again(void);

#endif
