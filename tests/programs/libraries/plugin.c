/* A library for dlopen: code, constants, variables, and a constructor that allocates and prints. */
#include "constructed.h"
#include "plugin.h"
#include <stdio.h>
#include <stdlib.h>

static int calls;
static int table[3000] = {1, 2, 3};
static int *allocated;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void construct(void)
{
    allocated = calloc(1000, sizeof *allocated);
    printf("plugin constructed\n");
}

__attribute__((destructor)) static void destroy(void)
{
    printf("plugin destroyed after %d calls\n", calls);
    free(allocated);
}

static int twice(int value)
{
    return 2 * value;
}

static int counted(int value)
{
    pthread_mutex_lock(&mutex);
    calls++;
    table[value % 3000] += value;
    allocated[value % 1000]++;
    pthread_mutex_unlock(&mutex);
    return table[0] + constructed_times();
}

static const char *name(void)
{
    return "a name among the constants";
}

const struct plugin plugin = {twice, counted, name, table};

int plugin_calls(void)
{
    return calls;
}
