/* The same machine in the words of UnixWare: its CPU groups, and the process on one after the other.
 *
 *   cc groups.c $(pkg-config --cflags --libs gondwana) -o groups */
#define _XOPEN_SOURCE 700
#include <cg.h>
#include <gondwana.h>
#include <stdio.h>

#define MOST 256

int main(void)
{
    cgid_t groups[MOST];
    int count = cg_ids(CG_ONLINE, MOST, groups);
    if (count < 0) {
        fprintf(stderr, "groups: %s\n", gw_error_message());
        return 1;
    }
    for (int i = 0; i < count; i++) {
        cginfo_t info;
        if (cg_info(groups[i], &info)) {
            fprintf(stderr, "groups: %s\n", gw_error_message());
            return 1;
        }
        printf("group %d: %ld processors, %s", groups[i], info.cg_ncpus_online,
               info.cg_near_mem > 0 ? "memory" : "no memory");
        if (cg_bind(P_PID, P_MYID, groups[i], CGBIND_NOW, NULL, NULL) == 0)
            printf(", the process is on %d", cg_current(P_LWPID, P_MYID));
        printf("\n");
    }
    return cg_bind(P_PID, P_MYID, CG_NONE, CGBIND_NOW, NULL, NULL);
}
