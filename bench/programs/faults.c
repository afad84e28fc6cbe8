/* What this computer's kernel takes for a fault that the process resolves itself, without any protocol.
 *
 * Pages of a memory file are mapped twice; one mapping reports faults through userfaultfd as SIGBUS. "local-fault": the
 * handler installs the page that is in the file already. "local-twin": the page is present and write-protected; the
 * handler copies it and lifts the protection. */
#include "measure.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGES = 4096 };

static int uffd;
static char *program_view, *runtime_view, *twins;
static volatile int twinning;

static void write_protect(char *start, size_t length, int on)
{
    struct uffdio_writeprotect request = {
        .range = {(uintptr_t)start, length},
        .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
    };
    must(ioctl(uffd, UFFDIO_WRITEPROTECT, &request), "UFFDIO_WRITEPROTECT");
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    char *page = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));
    if (twinning) {
        size_t offset = (size_t)(page - program_view);
        memcpy(twins + offset, runtime_view + offset, PAGE);
        write_protect(page, PAGE, 0);
        return;
    }
    struct uffdio_continue request = {.range = {(uintptr_t)page, PAGE}};
    must(ioctl(uffd, UFFDIO_CONTINUE, &request), "UFFDIO_CONTINUE");
}

static void *map(int file)
{
    int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, flags, file, 0);
    must(memory == MAP_FAILED, "mmap");
    return memory;
}

int main(void)
{
    int file = memfd_create("pages", MFD_CLOEXEC);
    must(file < 0 || ftruncate(file, (off_t)PAGES * PAGE), "memory file");
    program_view = map(file);
    runtime_view = map(file);
    twins = map(-1);
    memset(runtime_view, 1, (size_t)PAGES * PAGE);
    memset(twins, 1, (size_t)PAGES * PAGE);

    uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    must(uffd < 0, "userfaultfd");
    struct uffdio_api api = {
        .api = UFFD_API,
        .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
    };
    must(ioctl(uffd, UFFDIO_API, &api), "UFFDIO_API");
    struct uffdio_register range = {
        .range = {(uintptr_t)program_view, (size_t)PAGES * PAGE},
        .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP,
    };
    must(ioctl(uffd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    must(sigaltstack(&stack, NULL), "sigaltstack");
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    must(sigaction(SIGBUS, &action, NULL), "sigaction");

    struct samples faults = new_samples("local-fault", PAGES);
    for (long i = 0; i < PAGES; i++) {
        volatile char *byte = program_view + scattered(i, PAGES) * PAGE;
        int64_t start = now();
        (void)*byte;
        add_sample(&faults, now() - start);
    }
    write_protect(program_view, (size_t)PAGES * PAGE, 1);
    twinning = 1;
    struct samples copies = new_samples("local-twin", PAGES);
    for (long i = 0; i < PAGES; i++) {
        volatile char *byte = program_view + scattered(i, PAGES) * PAGE;
        int64_t start = now();
        *byte = 2;
        add_sample(&copies, now() - start);
    }
    print_samples(&faults);
    print_samples(&copies);
    return 0;
}
