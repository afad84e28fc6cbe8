/* Threads that print in turn, ordered by nothing but an atomic instruction, in pieces of many lengths, as programs with spin locks of
 * their own do. What they print is longer than a buffer of the C library, and ends within one. */
#include "../harness.h"
#include <stdatomic.h>
#include <string.h>

static atomic_long turn;

static void piece(long at, int self)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    char part[1000];
    size_t length = (size_t)(at * 37 % 900 + 1);
    memset(part, 'A' + self, length);
    switch (at % 6) {
    case 0:
        printf("<%ld by %d>", at, self);
        break;
    case 1:
        EXPECT((long)length, (long)fwrite(part, 1, length, stdout));
        break;
    case 2:
        fputs(letters + at % 26, stdout);
        break;
    case 3:
        puts("");
        break;
    case 4:
        for (size_t byte = 0; byte < length % 40; byte++)
            putchar(letters[byte]);
        break;
    case 5:
        for (size_t byte = 0; byte < length % 40; byte++)
            putc_unlocked(letters[byte], stdout);
        break;
    }
}

static long print(int self)
{
    for (;;) {
        long now = atomic_load(&turn);
        if (now >= iterations)
            return 0;
        if (now % threads == self) {
            piece(now, self);
            atomic_fetch_add(&turn, 1);
        }
        else
            sched_yield();
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 600);
    printf("before the threads, ");
    run_threads(threads, print);
    printf("after them\n");
    return pass();
}
