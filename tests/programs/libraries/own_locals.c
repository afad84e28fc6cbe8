/* A library for dlopen that has thread-local variables, more than a C library would place beside its own. */
static __thread int local;
static __thread int large[15000];

int next_local(void)
{
    large[local % 15000]++;
    return ++local + large[14999];
}
