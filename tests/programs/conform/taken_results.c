/* While a thread waits for a connection or a message, another one takes the page for its peer's address: nothing is lost. */
#include "../harness.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TAKEN = 200 };

static struct {
    struct sockaddr_in peer, local;
    socklen_t size;
    char message[8];
    volatile long other; /* of the thread that takes the page */
} page __attribute__((aligned(PAGE)));

static in_port_t port[2], client_port[2]; /* of the stream and of the datagrams */
static pthread_barrier_t barrier;

static int bound(int kind, in_port_t *own)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    int made = socket(AF_INET, kind, 0);
    EXPECT(0, bind(made, (struct sockaddr *)&name, sizeof name));
    EXPECT(0, getsockname(made, (struct sockaddr *)&name, &size));
    *own = name.sin_port;
    return made;
}

static void serve(void)
{
    int stream = bound(SOCK_STREAM, &port[0]), datagrams = bound(SOCK_DGRAM, &port[1]);
    EXPECT(0, listen(stream, 1));
    for (long i = 0; i < iterations; i++) {
        pthread_barrier_wait(&barrier);
        page.size = sizeof page.peer;
        int accepted = accept(stream, (struct sockaddr *)&page.peer, &page.size);
        REQUIRE(accepted > 0);
        EXPECT(sizeof page.peer, page.size);
        in_port_t accepted_from = page.peer.sin_port;
        page.peer.sin_port = 0;
        page.size = 4; /* the rest is cut off */
        EXPECT(5, recvfrom(datagrams, page.message, sizeof page.message, 0, (struct sockaddr *)&page.peer, &page.size));
        EXPECT(sizeof page.peer, page.size);
        EXPECT(0, memcmp(page.message, "hello", 5));
        pthread_barrier_wait(&barrier);
        EXPECT(client_port[0], accepted_from);
        EXPECT(client_port[1], page.peer.sin_port);
        EXPECT(0, close(accepted));
        pthread_barrier_wait(&barrier);
    }
    EXPECT(0, close(stream) | close(datagrams));
}

static void take_the_page(void)
{
    for (int i = 0; i < TAKEN; i++)
        page.other++;
}

static void call(void)
{
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (long i = 0; i < iterations; i++) {
        int stream = bound(SOCK_STREAM, &client_port[0]), datagrams = bound(SOCK_DGRAM, &client_port[1]);
        pthread_barrier_wait(&barrier);
        take_the_page();
        server.sin_port = port[0];
        EXPECT(0, connect(stream, (struct sockaddr *)&server, sizeof server));
        take_the_page();
        server.sin_port = port[1];
        EXPECT(5, sendto(datagrams, "hello", 5, 0, (struct sockaddr *)&server, sizeof server));
        pthread_barrier_wait(&barrier);
        EXPECT(0, close(stream) | close(datagrams));
        pthread_barrier_wait(&barrier);
    }
}

static long work(int self)
{
    (self ? call : serve)();
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 40);
    REQUIRE(threads == 2);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, 2));
    run_threads(threads, work);
    EXPECT(2 * TAKEN * iterations, page.other);
    return pass();
}
