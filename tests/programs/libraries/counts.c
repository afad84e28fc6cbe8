/* A library that synchronises by an atomic instruction of its own. */
static int count;

int counts(void)
{
    return __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
}
