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
static int control, node, listener;
static int *over;

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

static void connect_to_all(void)
{
	char *at = strstr(boot, "\"peers\":[");
	at += strlen("\"peers\":[");
	while ((at = strchr(at, ':'))) {
		char address[16] = "";
		char *start = at;
		struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(strtol(at + 1, NULL, 10)) };
		while (start[-1] != '"')
			start--;
		memcpy(address, start, at - start);
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (inet_pton(AF_INET, address, &peer.sin_addr) != 1 ||
		    connect(fd, (struct sockaddr *)&peer, sizeof peer) < 0)
			_exit(125);
		close(fd);
		at = strchr(at, '"');
		if (at[1] == ']')
			break;
	}
}

static void at_exit(void)
{
	report("{\"Exit\":{\"status\":0}}");
	report("{\"Stats\":{\"faults\":{\"read\":1}}}");
	if (!over) {
		connect_to_all();
		return;
	}
	*over = 1;
	syscall(SYS_futex, over, FUTEX_WAKE, 1000, NULL, NULL, 0);
}

static void wait_for_the_end(void)
{
	if (!over && accept(listener, NULL, NULL) < 0)
		_exit(125);
	while (over && !*over)
		if (syscall(SYS_futex, over, FUTEX_WAIT, 0, NULL, NULL, 0) < 0 && errno != EAGAIN && errno != EINTR)
			_exit(125);
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
	int fabric = number(boot, "\"fd\":");
	fcntl(control, F_SETFD, FD_CLOEXEC);
	listener = number(boot, "\"listener_fd\":");
	fcntl(fabric < 0 ? listener : fabric, F_SETFD, FD_CLOEXEC);
	close(atoi(variable));
	unsetenv("GONDWANA_BOOT");
	unsetenv("LD_BIND_NOW");
	unsetenv("LD_PRELOAD");
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
			report("{\"Crash\":{\"thread\":3,\"signal\":11,\"address\":4096,\"what\":\"\"}}");
			raise(SIGSEGV);
		} else if (!strcmp(orders, "kill")) {
			raise(SIGKILL);
		} else if (!strcmp(orders, "print")) {
			puts("from node 1");
			fflush(stdout);
		}
	}
	wait_for_the_end();
	report("{\"Stats\":{\"faults\":{\"read\":41}}}");
	_exit(0);
}
