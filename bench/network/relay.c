/* Carries packets between network namespaces of this computer, each after a delay: a network that is slower than loopback.
 *
 *     relay DELAY_US GBIT NAMESPACE...
 *
 * Makes a TUN device in each namespace, 10.91.0.1 in the first, 10.91.0.2 in the second and so on, says "ready" on its output, and
 * carries packets until it is killed. A packet arrives DELAY_US microseconds after its last bit has left, at GBIT gigabits a
 * second for each receiver.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_NODES = 16,
    /* So that a page is one packet. */
    PACKET = 65000,
    /* Of each receiver; a packet more is lost, as by a switch. */
    UNDER_WAY = 4096,
    /* Sooner is not worth sleeping, in nanoseconds. */
    SOON = 3000,
    /* Where an IPv4 packet has the last byte of its destination. */
    LAST_OF_DESTINATION = 19,
};

struct packet {
    int64_t due;
    ssize_t length;
    char *bytes;
};

static struct node {
    int device;
    /* When all that was sent to it has left, in nanoseconds. */
    int64_t idle_from;
    struct packet packets[UNDER_WAY];
    unsigned taken, added;
} nodes[MOST_NODES];

static void fail(const char *what)
{
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* The number that a text is, or -1 if it is none. */
static double number(const char *text)
{
    char *end;
    double value = text ? strtod(text, &end) : -1;
    return text && end != text && !*end ? value : -1;
}

/* The device of a namespace, with its address. */
static int open_device(const char *name, int number)
{
    char text[512];
    snprintf(text, sizeof text, "/run/netns/%s", name);
    int space = open(text, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0)
        fail(text);
    close(space);
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "slow0"};
    if (device < 0 || ioctl(device, TUNSETIFF, &request) != 0)
        fail("/dev/net/tun");
    snprintf(text, sizeof text,
             "ip addr add 10.91.0.%d/24 dev slow0 && ip link set slow0 mtu %d txqueuelen 5000 up && ip link set lo up", number + 1,
             PACKET);
    if (system(text) != 0)
        exit(1);
    return device;
}

/* Takes what a device has sent; false if there was nothing. */
static bool take(int device, int count, int64_t delay, double gbit)
{
    static char bytes[PACKET + 1];
    bool any = false;
    for (ssize_t length; (length = read(device, bytes, sizeof bytes)) > 0; any = true) {
        int to = (unsigned char)bytes[LAST_OF_DESTINATION] - 1;
        if (bytes[0] >> 4 != 4 || length <= LAST_OF_DESTINATION || to < 0 || to >= count)
            continue;
        struct node *node = &nodes[to];
        if (node->added - node->taken == UNDER_WAY)
            continue;
        int64_t time = now(), begins = time > node->idle_from ? time : node->idle_from;
        node->idle_from = begins + (int64_t)(8 * (double)length / gbit);
        struct packet *packet = &node->packets[node->added++ % UNDER_WAY];
        *packet = (struct packet){node->idle_from + delay, length, malloc((size_t)length)};
        if (!packet->bytes)
            fail("a packet");
        memcpy(packet->bytes, bytes, (size_t)length);
    }
    return any;
}

/* Gives a node what is due; returns when the next packet is, or 0 if there is none. */
static int64_t give(struct node *node, bool *any)
{
    while (node->taken != node->added) {
        struct packet *packet = &node->packets[node->taken % UNDER_WAY];
        if (packet->due > now())
            return packet->due;
        /* What the receiver has no room for is lost, as in any network. */
        if (write(node->device, packet->bytes, (size_t)packet->length) < 0 && errno != EAGAIN && errno != ENOBUFS)
            fail("a device");
        free(packet->bytes);
        node->taken++;
        *any = true;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int count = argc - 3;
    double delay = argc > 1 ? 1000 * number(argv[1]) : -1, gbit = argc > 2 ? number(argv[2]) : -1;
    if (count < 2 || count > MOST_NODES || !(delay >= 0 && delay < 1e9) || !(gbit > 0 && gbit < 1e6)) {
        fprintf(stderr, "relay: usage: relay DELAY_US GBIT NAMESPACE... (2 to %d), a delay of less than a second, gigabits above 0\n", MOST_NODES);
        return 2;
    }
    prctl(PR_SET_TIMERSLACK, 1);
    struct pollfd devices[MOST_NODES];
    for (int i = 0; i < count; i++) {
        nodes[i].device = open_device(argv[3 + i], i);
        devices[i] = (struct pollfd){.fd = nodes[i].device, .events = POLLIN};
    }
    /* It is the network, and must not wait for those who use it. */
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 50});
    puts("ready");
    fflush(stdout);
    for (;;) {
        bool any = false;
        int64_t next = 0;
        for (int i = 0; i < count; i++)
            any |= take(nodes[i].device, count, (int64_t)delay, gbit);
        for (int i = 0; i < count; i++) {
            int64_t due = give(&nodes[i], &any);
            if (due && (!next || due < next))
                next = due;
        }
        int64_t left = next ? next - now() : INT64_C(1000000000);
        if (!any && left > SOON)
            ppoll(devices, (nfds_t)count, &(struct timespec){left / 1000000000, left % 1000000000}, NULL);
    }
}
