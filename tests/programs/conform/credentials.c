/* A thread changes the users and groups of the process while others compute and wait: all threads have them, on all nodes. */
#include "../harness.h"
#include <grp.h>
#include <unistd.h>

static pthread_barrier_t barrier;
static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER;
static bool is_over;
static long sum[MAX_THREADS];

static long are(uid_t user, uid_t effective, gid_t group, int count)
{
    gid_t groups[64];
    uid_t users[3];
    gid_t three[3];
    EXPECT(0, getresuid(&users[0], &users[1], &users[2]));
    EXPECT(0, getresgid(&three[0], &three[1], &three[2]));
    return (users[0] != user) + (users[1] != effective) + (three[0] != group) + (three[2] != group) +
           (getgroups(64, groups) != count) + (count == 2 && (groups[0] != 7 || groups[1] != 8));
}

static long work(int self)
{
    long violations = 0;
    int leader = threads - 1;
    /* The others compute, wait for a mutex, and wait for pages meanwhile. */
    pthread_barrier_wait(&barrier);
    if (self == leader) {
        gid_t groups[] = {7, 8};
        EXPECT(0, setgroups(2, groups));
        EXPECT(0, setresgid(12, 12, 12));
        EXPECT(0, seteuid(11));
        pthread_mutex_lock(&common);
        is_over = true;
        pthread_mutex_unlock(&common);
    } else {
        for (bool over = false; !over;) {
            pthread_mutex_lock(&common);
            for (int i = 0; i < threads; i++)
                sum[i]++;
            over = is_over;
            pthread_mutex_unlock(&common);
        }
    }
    pthread_barrier_wait(&barrier);
    violations += are(0, 11, 12, 2);
    pthread_barrier_wait(&barrier);
    if (self == leader)
        violations += setgroups(0, NULL) != -1 || errno != EPERM;
    pthread_barrier_wait(&barrier);
    violations += are(0, 11, 12, 2);
    pthread_barrier_wait(&barrier);
    if (self == 0) {
        EXPECT(0, seteuid(0));
        EXPECT(0, setgroups(0, NULL));
        EXPECT(0, setuid(11));
    }
    pthread_barrier_wait(&barrier);
    violations += are(11, 11, 12, 0);
    violations += setuid(0) != -1 || errno != EPERM;
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    if (geteuid() != 0)
        return verdict(0, "");
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    return verdict(run_threads(threads, work), "a thread had other users or groups");
}
