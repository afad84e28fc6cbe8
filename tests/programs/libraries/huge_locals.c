/* A library for dlopen with more thread-local variables than there is room for in all threads. */
static __thread char huge[1 << 20];

int next_huge(int index)
{
    return ++huge[index];
}
