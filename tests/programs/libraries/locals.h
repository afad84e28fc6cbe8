#ifndef LOCALS_H
#define LOCALS_H

/* What the library offers, as its symbol "locals". Each thread begins with 5, 11 and 7. */
struct locals {
    int (*next)(void);                /* counts the thread's "counter" up */
    int *(*address)(void);            /* of that variable */
    long (*quick)(void);              /* counts another one up */
    int (*pointed)(void);             /* what a thread-local pointer points to */
    long (*sum)(int index, int what); /* adds to the thread's table; the sum of it */
    int (*name)(const char *wanted);  /* compares the name that a thread-local object holds */
    int (*checked)(int value);        /* throws if it is too large, catches what is thrown, and gives -1 */
    long (*made)(void);               /* how many thread-local objects were constructed */
    long (*gone)(void);               /* how many were destroyed */
};

#endif
