/* A context that one thread has made, and left, goes on in other threads. */
#include "../absent.h"
#include <signal.h>
#include <ucontext.h>

/* A context has the first page of a job's memory for itself, with its stack in the last two. */
struct coroutine {
    ucontext_t own;
    char page[PAGE - sizeof(ucontext_t)];
    ucontext_t *back;
    int steps;
};

static void leave(struct coroutine *coroutine)
{
    coroutine->steps++;
    EXPECT(0, swapcontext(&coroutine->own, coroutine->back));
}

static void body(unsigned low, unsigned high)
{
    struct coroutine *coroutine = (struct coroutine *)((unsigned long)high << 32 | low);
    leave(coroutine);
    leave(coroutine);
    coroutine->steps++;
    setcontext(coroutine->back);
    fail("a context did not take effect");
}

static void enter(struct coroutine *coroutine)
{
    ucontext_t here;
    coroutine->back = &here;
    EXPECT(0, swapcontext(&here, &coroutine->own));
}

static void begins(char *memory)
{
    struct coroutine *coroutine = (struct coroutine *)memory;
    EXPECT(0, getcontext(&coroutine->own));
    coroutine->own.uc_stack.ss_sp = memory + 2 * PAGE;
    coroutine->own.uc_stack.ss_size = ROOM - 2 * PAGE;
    sigaddset(&coroutine->own.uc_sigmask, SIGUSR1);
    makecontext(&coroutine->own, (void (*)(void))body, 2, (unsigned)(unsigned long)memory, (unsigned)((unsigned long)memory >> 32));
    enter(coroutine);
    EXPECT(1, coroutine->steps);
}

static void ends(char *memory)
{
    struct coroutine *coroutine = (struct coroutine *)memory;
    enter(coroutine);
    EXPECT(2, coroutine->steps);
    EXPECT(1, sigismember(&coroutine->own.uc_sigmask, SIGUSR1));
    enter(coroutine);
    EXPECT(3, coroutine->steps);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    static const struct job all[] = {{"switch", begins, ends}};
    return run_jobs(all, 1);
}
