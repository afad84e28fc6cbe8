/* Every member of the malloc family, in main and in threads: alignment, zeroing, growth, errors. */
#include "../harness.h"
#include <malloc.h>

static bool all_are(const unsigned char *p, size_t n, unsigned char value)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != value)
            return false;
    return true;
}

static void aligned(void)
{
    for (size_t alignment = 16; alignment <= 65536; alignment *= 2) {
        void *p = NULL;
        EXPECT(0, posix_memalign(&p, alignment, 100));
        REQUIRE(p && (uintptr_t)p % alignment == 0);
        memset(p, 1, 100);
        void *q = aligned_alloc(alignment, alignment * 2);
        REQUIRE(q && (uintptr_t)q % alignment == 0);
        memset(q, 2, alignment * 2);
        void *r = memalign(alignment, 33);
        REQUIRE(r && (uintptr_t)r % alignment == 0);
        memset(r, 3, 33);
        REQUIRE(all_are(p, 100, 1) && all_are(q, alignment * 2, 2) && all_are(r, 33, 3));
        free(p);
        free(q);
        free(r);
    }
    void *untouched = &untouched;
    EXPECT(EINVAL, posix_memalign(&untouched, 24, 100));
    EXPECT(EINVAL, posix_memalign(&untouched, 2, 100));
    REQUIRE(untouched == &untouched);
    void *page = valloc(10);
    REQUIRE(page && (uintptr_t)page % PAGE == 0);
    free(page);
}

static void zeroed(void)
{
    /* Dirty blocks go back first, so that calloc has to clean what it gives again. */
    for (size_t size = 1; size < 300000; size = size * 3 + 1) {
        unsigned char *dirty = malloc(size);
        memset(dirty, 0xff, size);
        free(dirty);
        unsigned char *clean = calloc(size, 1);
        REQUIRE(clean && all_are(clean, size, 0));
        memset(clean, 0xee, size);
        free(clean);
    }
}

static void grown(void)
{
    size_t size = 1;
    unsigned char *p = realloc(NULL, size);
    *p = 0;
    while (size < 3000000) {
        size_t bigger = size * 2 + 5;
        p = realloc(p, bigger);
        REQUIRE(p);
        for (size_t i = size; i < bigger; i++)
            p[i] = (unsigned char)(i * 7);
        size = bigger;
    }
    for (size_t i = 1; i < size; i++)
        REQUIRE(p[i] == (unsigned char)(i * 7));
    for (; size > 10; size /= 3) {
        p = realloc(p, size);
        REQUIRE(p);
        for (size_t i = 1; i < size; i++)
            REQUIRE(p[i] == (unsigned char)(i * 7));
    }
    p = reallocarray(p, 10, 20);
    REQUIRE(p && p[1] == 7);
    free(p);
}

static void odd_cases(void)
{
    free(NULL);
    void *a = malloc(0), *b = malloc(0);
    REQUIRE(a && b && a != b);
    free(a);
    free(b);
    REQUIRE(malloc_usable_size(NULL) == 0);
    volatile size_t huge = (size_t)1 << 62, half = (size_t)1 << 40;
    errno = 0;
    REQUIRE(malloc(huge) == NULL && errno == ENOMEM);
    errno = 0;
    REQUIRE(calloc(half, half) == NULL && errno == ENOMEM);
    char *kept = malloc(10);
    strcpy(kept, "kept");
    errno = 0;
    char *failed = realloc(kept, huge);
    REQUIRE(failed == NULL && errno == ENOMEM && strcmp(kept, "kept") == 0);
    free(kept);
    char *copy = strdup("a string");
    REQUIRE(strcmp(copy, "a string") == 0);
    free(copy);
    char *formatted = NULL;
    EXPECT(5, asprintf(&formatted, "%d-%s", 12, "ab"));
    REQUIRE(strcmp(formatted, "12-ab") == 0);
    free(formatted);
}

static long work(int self)
{
    (void)self;
    for (long i = 0; i < iterations; i++) {
        aligned();
        zeroed();
        grown();
        odd_cases();
    }
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 2);
    work(0);
    run_threads(threads, work);
    return pass();
}
