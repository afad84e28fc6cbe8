/* What the kernel reads and writes when it is asked about queues of messages and sets of semaphores may be in pages that another node has. */
#include "../harness.h"
#include "../absent.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

#define TWO (memory + PAGE)

static int queue, set;

/* Large numbers of semaphores: their values are on two pages. */
enum { SEMAPHORES = 200 };

static void asks_about_queue(char *memory)
{
    struct msqid_ds *asked = (struct msqid_ds *)(TWO - 8);
    EXPECT(0, msgctl(queue, IPC_STAT, asked));
    EXPECT(0600, asked->msg_perm.mode & 0777);
    REQUIRE(asked->msg_qbytes > 0);
}

static void fills_in_queue(char *memory)
{
    EXPECT(0, msgctl(queue, IPC_STAT, (struct msqid_ds *)(TWO - 8)));
}

static void changes_queue(char *memory)
{
    EXPECT(0, msgctl(queue, IPC_SET, (struct msqid_ds *)(TWO - 8)));
}

static void asks_about_set(char *memory)
{
    struct semid_ds *asked = (struct semid_ds *)(TWO - 8);
    EXPECT(0, semctl(set, 0, IPC_STAT, asked));
    EXPECT(SEMAPHORES, asked->sem_nsems);
}

static void fills_in_set(char *memory)
{
    EXPECT(0, semctl(set, 0, IPC_STAT, (struct semid_ds *)(TWO - 8)));
}

static void changes_set(char *memory)
{
    EXPECT(0, semctl(set, 0, IPC_SET, (struct semid_ds *)(TWO - 8)));
}

static void writes_values(char *memory)
{
    unsigned short *values = (unsigned short *)(TWO - 20);
    for (int i = 0; i < SEMAPHORES; i++)
        values[i] = i;
}

static void sets_values(char *memory)
{
    EXPECT(0, semctl(set, 0, SETALL, (unsigned short *)(TWO - 20)));
    EXPECT(7, semctl(set, 7, GETVAL));
}

static void gets_values(char *memory)
{
    unsigned short *values = (unsigned short *)(TWO - 20);
    EXPECT(0, semctl(set, 9, SETVAL, 100));
    EXPECT(0, semctl(set, 0, GETALL, values));
    EXPECT(100, values[9]);
    for (int i = 10; i < SEMAPHORES; i++)
        EXPECT(i, values[i]);
}

static void asks_for_limits(char *memory)
{
    REQUIRE(msgctl(0, IPC_INFO, (struct msqid_ds *)(TWO - 8)) >= 0);
    REQUIRE(semctl(0, 0, SEM_INFO, (struct seminfo *)memory) >= 0);
}

int main(int argc, char **argv)
{
    static const struct job all[] = {
        {"queue", NULL, asks_about_queue},
        {"queue's settings", fills_in_queue, changes_queue},
        {"set", NULL, asks_about_set},
        {"set's settings", fills_in_set, changes_set},
        {"values to be set", writes_values, sets_values},
        {"values", writes_values, gets_values},
        {"limits", NULL, asks_for_limits},
    };
    parse(argc, argv, 3, 1);
    queue = msgget(IPC_PRIVATE, 0600);
    set = semget(IPC_PRIVATE, SEMAPHORES, 0600);
    REQUIRE(queue >= 0 && set >= 0);
    int result = run_jobs(all, sizeof all / sizeof *all);
    EXPECT(0, msgctl(queue, IPC_RMID, NULL));
    EXPECT(0, semctl(set, 0, IPC_RMID));
    return result;
}
