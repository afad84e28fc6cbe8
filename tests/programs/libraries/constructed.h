#ifndef CONSTRUCTED_H
#define CONSTRUCTED_H

#include <pthread.h>

enum { CONSTRUCTED = 5000 };

extern int *constructed_numbers;
extern char *constructed_name;

/* How often the constructor has run. */
int constructed_times(void);

/* Adds to a number; returns what it is then. */
int constructed_add(int index, int what);

#endif
