/* A library for dlopen that has a thread-local variable. */
static __thread int local;

int next_local(void)
{
    return ++local;
}
