/* Blocks the signals that ask it to end, says so, and waits for ever. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    puts("all have started");
    fflush(stdout);
    for (;;)
        pause();
}
