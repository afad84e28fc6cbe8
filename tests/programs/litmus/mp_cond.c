/* Message passing by a condition variable, back and forth between one writer and the readers. */
#include "../harness.h"

static struct message {
    long length;
    char *text; /* a fresh heap block in each round */
} message;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sent = PTHREAD_COND_INITIALIZER, received = PTHREAD_COND_INITIALIZER;
static long round_sent, readers_done;

static void send_message(long round)
{
    message.length = 1 + round * 37 % 5000;
    message.text = malloc((size_t)message.length);
    memset(message.text, (int)(round % 251), (size_t)message.length);
    pthread_mutex_lock(&mutex);
    round_sent = round;
    readers_done = 0;
    pthread_cond_broadcast(&sent);
    while (readers_done < threads - 1)
        pthread_cond_wait(&received, &mutex);
    pthread_mutex_unlock(&mutex);
    free(message.text);
}

static long receive_message(long round)
{
    long violations = 0;
    pthread_mutex_lock(&mutex);
    while (round_sent < round)
        pthread_cond_wait(&sent, &mutex);
    pthread_mutex_unlock(&mutex);
    violations += message.length != 1 + round * 37 % 5000;
    for (long i = 0; i < message.length; i++)
        violations += (unsigned char)message.text[i] != round % 251;
    pthread_mutex_lock(&mutex);
    if (++readers_done == threads - 1)
        pthread_cond_signal(&received);
    pthread_mutex_unlock(&mutex);
    return violations;
}

static long work(int self)
{
    long violations = 0;
    for (long round = 1; round <= iterations; round++)
        if (self == 0)
            send_message(round);
        else
            violations += receive_message(round);
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 200);
    return verdict(run_threads(threads, work), "a message differs from what was sent");
}
