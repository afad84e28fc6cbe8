/* A program says what it has at which addresses, for the test that started it to compare with what it finds out. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <link.h>
#include <stdio.h>
#include <unistd.h>

/* An object that is loaded: what is added to its addresses, its first address, the one behind its last, its file. */
static int say_image(struct dl_phdr_info *info, size_t size, void *own)
{
    unsigned long start = -1UL, end = 0;
    const char *file = info->dlpi_name;
    (void)size;
    for (int index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[index];
        unsigned long from = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        start = from < start ? from : start;
        end = from + part->p_memsz > end ? from + part->p_memsz : end;
    }
    printf("image\t%lx\t%lx\t%lx\t%s\n", (unsigned long)info->dlpi_addr, start, end, *file ? file : (char *)own);
    return 0;
}

static void say_images(void)
{
    static char own[4096];
    if (readlink("/proc/self/exe", own, sizeof own - 1) < 0)
        return;
    dl_iterate_phdr(say_image, own);
}

/* What is at an address is called so. */
#define SAY_AS(what, name) printf("part\t%lx\t%s\n", (unsigned long)&(what), name)
#define SAY(what) SAY_AS(what, #what)

/* A pointer, and how long one thing is that it points to. */
#define SAY_POINTER(what) printf("pointer\t%lx\t%s\t%lu\n", (unsigned long)&(what), #what, (unsigned long)sizeof *(what))

/* A part of what a pointer points to. */
#define SAY_TARGET(what, part) \
    printf("target\t%lx\t%s\t%lu\n", (unsigned long)&(what), #part, (unsigned long)((char *)&(what)part - (char *)(what)))

/* A pointer to things that have no parts. */
#define SAY_NO_TARGET(what) printf("target\t%lx\t\t%lu\n", (unsigned long)&(what), 17UL)

/* Where this is called returns to a place in the function; `SAY_HERE` is a line of its own. */
static void __attribute__((noinline)) say_here(const char *function, int line)
{
    printf("code\t%lx\t%s\t%d\n", (unsigned long)__builtin_return_address(0), function, line);
    fflush(stdout);
}
#define SAY_HERE(function)                                                     \
    do {                                                                       \
        say_here(function, __LINE__);                                          \
        __asm__ volatile("" : : : "memory"); /* no jump instead of the call */ \
    } while (0)
