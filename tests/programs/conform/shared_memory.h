/* What programs have in common whose processes share memory. */
#ifndef TESTS_SHARED_MEMORY_H
#define TESTS_SHARED_MEMORY_H

#include "../harness.h"
#include <sys/mman.h>

/* New memory that a process shares with its children. */
static inline void *new_shared_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    return memory;
}

/* Makes a mutex that processes share; robust is PTHREAD_MUTEX_ROBUST or PTHREAD_MUTEX_STALLED. */
static inline void init_shared_mutex(pthread_mutex_t *mutex, int robust)
{
    pthread_mutexattr_t attributes;
    EXPECT(0, pthread_mutexattr_init(&attributes));
    EXPECT(0, pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    EXPECT(0, pthread_mutexattr_setrobust(&attributes, robust));
    EXPECT(0, pthread_mutex_init(mutex, &attributes));
}

#endif
