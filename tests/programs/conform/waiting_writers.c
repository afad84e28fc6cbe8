/* Readers pass writers that wait, unless the lock prefers writers: a reader that waits for another one would wait for ever otherwise. */
#include "../harness.h"
#include <errno.h>
#include <semaphore.h>
#include <unistd.h>

static pthread_rwlock_t lock, preferring = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t ready;
static int produced, consumed, written, ended;

static void *write_value(void *argument)
{
    sem_post(&ready);
    EXPECT(0, pthread_rwlock_wrlock(argument));
    written++;
    EXPECT(0, pthread_rwlock_unlock(argument));
    return NULL;
}

/* Holds the lock while it waits for the producer, who needs it too. */
static void *consume(void *argument)
{
    EXPECT(0, pthread_rwlock_rdlock(&lock));
    sem_post(&ready);
    pthread_mutex_lock(&mutex);
    while (consumed == produced)
        pthread_cond_wait(&changed, &mutex);
    consumed++;
    pthread_mutex_unlock(&mutex);
    EXPECT(0, pthread_rwlock_unlock(&lock));
    return argument;
}

static void produce(void)
{
    EXPECT(0, pthread_rwlock_rdlock(&lock));
    pthread_mutex_lock(&mutex);
    produced++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    EXPECT(0, pthread_rwlock_unlock(&lock));
}

static void *read_value(void *argument)
{
    sem_post(&ready);
    EXPECT(0, pthread_rwlock_rdlock(argument));
    pthread_mutex_lock(&mutex);
    ended++;
    pthread_mutex_unlock(&mutex);
    EXPECT(0, pthread_rwlock_unlock(argument));
    return NULL;
}

static void start(pthread_t *thread, void *(*function)(void *), void *argument)
{
    pthread_create(thread, NULL, function, argument);
    sem_wait(&ready);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 20);
    pthread_t consumer, writer, reader;
    sem_init(&ready, 0, 0);
    for (int i = 0; i < iterations; i++) {
        EXPECT(0, pthread_rwlock_init(&lock, NULL));
        start(&consumer, consume, NULL);
        start(&writer, write_value, &lock);
        usleep(2000);
        produce();
        pthread_join(consumer, NULL);
        pthread_join(writer, NULL);
        EXPECT(0, pthread_rwlock_destroy(&lock));
        /* Readers that wait for a writer go on together, past another writer. */
        EXPECT(0, pthread_rwlock_init(&lock, NULL));
        EXPECT(0, pthread_rwlock_wrlock(&lock));
        produced++;
        pthread_create(&consumer, NULL, consume, NULL);
        consumed++;
        start(&writer, write_value, &lock);
        usleep(2000);
        EXPECT(0, pthread_rwlock_unlock(&lock));
        produce();
        pthread_join(consumer, NULL);
        sem_wait(&ready);
        pthread_join(writer, NULL);
        /* Where writers are preferred, a reader waits. */
        EXPECT(0, pthread_rwlock_rdlock(&preferring));
        start(&writer, write_value, &preferring);
        while (pthread_rwlock_tryrdlock(&preferring) != EBUSY) {
            EXPECT(0, pthread_rwlock_unlock(&preferring));
            usleep(100);
        }
        start(&reader, read_value, &preferring);
        usleep(1000);
        pthread_mutex_lock(&mutex);
        EXPECT(i, ended);
        pthread_mutex_unlock(&mutex);
        EXPECT(0, pthread_rwlock_unlock(&preferring));
        pthread_join(writer, NULL);
        pthread_join(reader, NULL);
    }
    printf("%d %d %d %d\n", produced, consumed, written, ended);
    return pass();
}
