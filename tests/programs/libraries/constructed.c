/* A library whose constructor allocates and keeps what it has allocated. */
#include "constructed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int *constructed_numbers;
char *constructed_name;
static int constructions;
static pthread_mutex_t mutex;

__attribute__((constructor)) static void construct(int argc, char **argv)
{
    constructions++;
    constructed_numbers = calloc(CONSTRUCTED, sizeof *constructed_numbers);
    constructed_name = strdup(argc > 0 && argv[0] ? "named" : "nameless");
    pthread_mutex_init(&mutex, NULL);
    printf("library constructed\n");
}

__attribute__((destructor)) static void destroy(void)
{
    printf("library destroyed with %d\n", constructed_numbers[0]);
    free(constructed_numbers);
    free(constructed_name);
}

int constructed_times(void)
{
    return constructions;
}

int constructed_add(int index, int what)
{
    pthread_mutex_lock(&mutex);
    int now = constructed_numbers[index] += what;
    pthread_mutex_unlock(&mutex);
    return now;
}
