/* A stand-in for the runtime library: does what the launcher can see of it, and nothing else. Node 0 runs the
 * program; node 1 does what the variable NODE says; all but node 0 wait until the program has ended, which they
 * learn from a word in the shared segment, or from a connection. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char boot[65536];
static int control, node, nodes, listener;
/* In the segment: whether the program has ended, and how many nodes have reported. */
static volatile int *over;

static long number(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

static void report(const char *text)
{
	if (send(control, text, strlen(text), MSG_NOSIGNAL) < 0)
		_exit(125);
}

static void futex_wait(volatile int *word, int value)
{
	if (syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0) < 0 && errno != EAGAIN && errno != EINTR)
		_exit(125);
}

static void futex_wake(volatile int *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1000, NULL, NULL, 0);
}

/* Node 0 tells each of the others by a connection, which they close when they have reported. */
static void end_by_connections(void)
{
	char *at = strstr(boot, "\"peers\":[") + strlen("\"peers\":[");
	for (int peer = 0; *at == '"'; peer++) {
		char address[16] = "", byte;
		struct sockaddr_in to = { .sin_family = AF_INET };
		char *colon = strchr(at, ':'), *end = strchr(colon, '"');
		memcpy(address, at + 1, colon - at - 1);
		to.sin_port = htons(strtol(colon + 1, NULL, 10));
		at = end[1] == ',' ? end + 2 : end + 1;
		if (peer == 0)
			continue;
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
		    connect(fd, (struct sockaddr *)&to, sizeof to) < 0 || read(fd, &byte, 1) != 0)
			_exit(125);
		close(fd);
	}
}

static void at_exit(void)
{
	report("{\"Exit\":{\"status\":0}}");
	report("{\"Stats\":{\"faults\":{\"read\":1}}}");
	if (!over) {
		end_by_connections();
		return;
	}
	*over = 1;
	futex_wake(over);
	for (int closed; (closed = over[1]) < nodes - 1;)
		futex_wait(over + 1, closed);
}

static void until_the_end(void)
{
	int connection = -1;
	if (!over && (connection = accept(listener, NULL, NULL)) < 0)
		_exit(125);
	while (over && !*over)
		futex_wait(over, 0);
	report("{\"Stats\":{\"faults\":{\"read\":41}}}");
	if (over) {
		__sync_fetch_and_add(over + 1, 1);
		futex_wake(over + 1);
	}
	close(connection);
	/* Node 0's end is the end of this process. */
	for (;;)
		pause();
}

__attribute__((constructor)) static void start(void)
{
	const char *variable = getenv("GONDWANA_BOOT"), *orders = getenv("NODE");
	struct stat segment;
	if (!variable)
		return;
	if (pread(atoi(variable), boot, sizeof boot - 1, 0) <= 0)
		_exit(125);
	control = number(boot, "\"control_fd\":");
	node = number(boot, "\"node\":");
	nodes = number(boot, "\"nodes\":");
	int fabric = number(boot, "\"fd\":");
	fcntl(control, F_SETFD, FD_CLOEXEC);
	listener = number(boot, "\"listener_fd\":");
	fcntl(fabric < 0 ? listener : fabric, F_SETFD, FD_CLOEXEC);
	close(atoi(variable));
	unsetenv("GONDWANA_BOOT");
	unsetenv("GLIBC_TUNABLES");
	unsetenv("LD_BIND_NOW");
	unsetenv("LD_PRELOAD");
	unsetenv("OMP_DISPLAY_ENV");
	unsetenv("OMP_PROC_BIND");
	if (orders && !strcmp(orders, "mute"))
		_exit(0);
	if (fabric >= 0) {
		/* The last bytes of the segment, which nobody else uses here. */
		if (fstat(fabric, &segment) < 0)
			_exit(125);
		over = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fabric, segment.st_size - 4096);
		if (over == MAP_FAILED)
			_exit(125);
	}
	report("\"Up\"");
	if (node == 0) {
		atexit(at_exit);
		return;
	}
	if (orders && node == 1) {
		if (!strcmp(orders, "crash")) {
			report("{\"Crash\":{\"thread\":3,\"signal\":11,\"address\":4096,\"task\":0,\"what\":\"\"}}");
			raise(SIGSEGV);
		} else if (!strcmp(orders, "kill")) {
			raise(SIGKILL);
		} else if (!strcmp(orders, "print")) {
			puts("from node 1");
			fflush(stdout);
		}
	}
	until_the_end();
}
