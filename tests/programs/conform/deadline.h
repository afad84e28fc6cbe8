/* Times for calls with a timeout. */
#ifndef TESTS_DEADLINE_H
#define TESTS_DEADLINE_H

#include <time.h>

/* The time on `clock` that many milliseconds from now. */
static inline struct timespec deadline(clockid_t clock, long milliseconds)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += milliseconds % 1000 * 1000000;
    t.tv_sec += milliseconds / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* Whether `t` on `clock` has passed. */
static inline int passed(clockid_t clock, struct timespec t)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec > t.tv_sec || (now.tv_sec == t.tv_sec && now.tv_nsec >= t.tv_nsec);
}

/* A time that no call may accept. */
static const struct timespec invalid_time = {.tv_sec = 1, .tv_nsec = 1000000000};

#endif
