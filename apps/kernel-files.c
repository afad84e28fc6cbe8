/* The model of a kernel: buffer cache, name cache, directories and files. */
#include "kernel-parts.h"

#include <string.h>

/* What the disk's controller does: the processors do not make these accesses. */
__attribute__((no_sanitize("thread"), optimize("no-tree-loop-distribute-patterns")))
void transfer(char *to, const char *from)
{
    for (int at = 0; at < PAGE; at += 8)
        *(long *)(to + at) = *(const long *)(from + at);
}

static int buffer_of(struct set *set, int way)
{
    return (int)(set - sets) * WAYS + way;
}

/* The buffer of a block, for this process alone until put_buffer(). `fresh`: what is on the disk does not matter. */
int get_buffer(int block, bool fresh)
{
    struct set *set = &sets[block % SETS];
    for (;;) {
        int oldest = -1;
        lock(&set->latch);
        for (int way = 0; way < WAYS; way++) {
            if (set->block[way] == block) {
                set->users[way]++;
                set->used[way] = ++set->clock;
                unlock(&set->latch);
                sleep_lock(&busy[buffer_of(set, way)]);
                return buffer_of(set, way);
            }
            if (set->users[way] == 0 && (oldest < 0 || set->used[way] < set->used[oldest]))
                oldest = way;
        }
        if (oldest < 0) {
            unlock(&set->latch);
            disk_wait(block); /* all are in use */
            continue;
        }
        int buffer = buffer_of(set, oldest), before = set->block[oldest];
        bool written = set->dirty[oldest];
        char *data = buffers + (size_t)buffer * PAGE;
        /* Nobody uses it, so this does not wait. The contents come and go at once, so that others find them; the time
         * passes below. */
        pthread_mutex_lock(&busy[buffer]);
        if (written)
            transfer(disk + (size_t)before * PAGE, data);
        if (!fresh)
            transfer(data, disk + (size_t)block * PAGE);
        set->block[oldest] = block;
        set->users[oldest] = 1;
        set->used[oldest] = ++set->clock;
        set->dirty[oldest] = false;
        unlock(&set->latch);
        if (written)
            disk_wait(before);
        if (!fresh)
            disk_wait(block);
        return buffer;
    }
}

void put_buffer(int buffer, bool written)
{
    struct set *set = &sets[buffer / WAYS];
    pthread_mutex_unlock(&busy[buffer]);
    lock(&set->latch);
    set->users[buffer % WAYS]--;
    set->dirty[buffer % WAYS] |= written;
    unlock(&set->latch);
}

/* A block is free: what its buffer has is never written. */
static void drop_buffer(int block)
{
    struct set *set = &sets[block % SETS];
    lock(&set->latch);
    for (int way = 0; way < WAYS; way++)
        if (set->block[way] == block)
            set->block[way] = -1, set->dirty[way] = false;
    unlock(&set->latch);
}

static unsigned chain_of(int directory, const char *name)
{
    unsigned hash = (unsigned)directory * 31;
    for (; *name; name++)
        hash = hash * 31 + (unsigned char)*name;
    return hash % CHAINS;
}

/* The last recently used name comes to the end, or an invalid one to the start. */
static void move_name(int at, bool newest)
{
    struct cached_name *name = names->name;
    *(name[at].newer < 0 ? &names->newest : &name[name[at].newer].older) = name[at].older;
    *(name[at].older < 0 ? &names->oldest : &name[name[at].older].newer) = name[at].newer;
    if (newest) {
        name[at].newer = -1, name[at].older = names->newest;
        *(names->newest < 0 ? &names->oldest : &name[names->newest].newer) = at;
        names->newest = at;
    } else {
        name[at].older = -1, name[at].newer = names->oldest;
        *(names->oldest < 0 ? &names->newest : &name[names->oldest].older) = at;
        names->oldest = at;
    }
}

static int find_name(int directory, const char *wanted)
{
    int at = names->chain[chain_of(directory, wanted)];
    while (at >= 0 && (names->name[at].directory != directory || strcmp(names->name[at].name, wanted) != 0))
        at = names->name[at].chained;
    return at;
}

static void unchain(int at)
{
    struct cached_name *name = &names->name[at];
    if (name->directory < 0)
        return;
    int *link = &names->chain[chain_of(name->directory, name->name)];
    while (*link != at)
        link = &names->name[*link].chained;
    *link = name->chained;
    name->directory = -1;
}

static int lookup_name(int directory, const char *wanted)
{
    lock(&names->latch);
    int at = find_name(directory, wanted), inode = -1;
    if (at >= 0) {
        inode = names->name[at].inode;
        move_name(at, true);
    }
    unlock(&names->latch);
    return inode;
}

static void enter_name(int directory, const char *new, int inode)
{
    lock(&names->latch);
    if (find_name(directory, new) < 0) {
        int at = names->oldest;
        struct cached_name *name = &names->name[at];
        unchain(at);
        name->directory = directory, name->inode = inode;
        strcpy(name->name, new);
        int *chain = &names->chain[chain_of(directory, new)];
        name->chained = *chain, *chain = at;
        move_name(at, true);
    }
    unlock(&names->latch);
}

static void forget_name(int directory, const char *old)
{
    lock(&names->latch);
    int at = find_name(directory, old);
    if (at >= 0) {
        unchain(at);
        move_name(at, false);
    }
    unlock(&names->latch);
}

/* Has the entry of a name, or the first free one for "", be `inode` with name `as`; with `as` null, nothing changes. The old
 * inode, and the block. The caller has the directory's lock. */
static int change_directory(int directory, const char *name, const char *as, int inode, int *where)
{
    for (int number = 0; number < inodes[directory].blocks; number++) {
        *where = inodes[directory].block[number];
        int buffer = get_buffer(*where, false);
        struct directory_entry *entry = (struct directory_entry *)(buffers + (size_t)buffer * PAGE);
        for (int at = 0; at < IN_DIRECTORY; at++, entry++) {
            if (strcmp(entry->name, name) == 0) {
                int old = entry->inode;
                if (as != NULL) {
                    strcpy(entry->name, as);
                    entry->inode = inode;
                }
                put_buffer(buffer, as != NULL);
                return old;
            }
        }
        put_buffer(buffer, false);
    }
    return -1;
}

int lookup(const char *const *path)
{
    int inode = 0, where;
    for (; *path; path++) {
        int directory = inode;
        inode = lookup_name(directory, *path);
        if (inode < 0) {
            sleep_lock(&inodes[directory].lock);
            inode = change_directory(directory, *path, NULL, 0, &where);
            pthread_mutex_unlock(&inodes[directory].lock);
            if (inode < 0)
                return -1;
            enter_name(directory, *path, inode);
        }
    }
    return inode;
}

/* A block of a file, or -1; with `add` a new one if there is none. */
int block_of(int inode, int number, bool *add)
{
    struct inode *of = &inodes[inode];
    sleep_lock(&of->lock);
    of->used++;
    *add = *add && number == of->blocks;
    if (*add) {
        int group = inode % GROUPS;
        of->block[of->blocks++] = take(&free_blocks[group], next_block, sizeof *next_block);
    }
    int block = number < of->blocks ? of->block[number] : -1;
    pthread_mutex_unlock(&of->lock);
    return block;
}

int sys_open(const char *const *path)
{
    enter(CALL_OPEN);
    int inode = lookup(path);
    if (inode >= 0) {
        sleep_lock(&inodes[inode].lock);
        inodes[inode].links++;
        pthread_mutex_unlock(&inodes[inode].lock);
    }
    leave();
    return inode;
}

void sys_close(int inode)
{
    enter(CALL_CLOSE);
    sleep_lock(&inodes[inode].lock);
    inodes[inode].links--;
    pthread_mutex_unlock(&inodes[inode].lock);
    leave();
}

int sys_stat(const char *const *path)
{
    enter(CALL_STAT);
    int inode = lookup(path), blocks = -1;
    if (inode >= 0) {
        sleep_lock(&inodes[inode].lock);
        blocks = inodes[inode].blocks;
        pthread_mutex_unlock(&inodes[inode].lock);
    }
    leave();
    return blocks;
}

int sys_creat(int directory, const char *name)
{
    enter(CALL_CREAT);
    int inode = take(free_inodes, &inodes->next, sizeof *inodes), where = 0;
    inodes[inode].blocks = 0;
    inodes[inode].links = 1;
    sleep_lock(&inodes[directory].lock);
    if (change_directory(directory, "", name, inode, &where) < 0)
        die("a directory is full");
    /* Directories are written at once. */
    disk_wait(where);
    pthread_mutex_unlock(&inodes[directory].lock);
    enter_name(directory, name, inode);
    leave();
    return inode;
}

void sys_unlink(int directory, const char *name)
{
    enter(CALL_UNLINK);
    int where = 0;
    sleep_lock(&inodes[directory].lock);
    int inode = change_directory(directory, name, "", 0, &where);
    if (inode < 0)
        die("there is no file %s", name);
    forget_name(directory, name);
    disk_wait(where);
    pthread_mutex_unlock(&inodes[directory].lock);
    for (int number = 0; number < inodes[inode].blocks; number++) {
        drop_buffer(inodes[inode].block[number]);
        give_back(&free_blocks[inode % GROUPS], next_block, sizeof *next_block, inodes[inode].block[number]);
    }
    give_back(free_inodes, &inodes->next, sizeof *inodes, inode);
    leave();
}

bool sys_read(int inode, int number, char *to)
{
    enter(CALL_READ);
    bool add = false;
    int block = block_of(inode, number, &add);
    if (block >= 0) {
        int buffer = get_buffer(block, false);
        copy(to, buffers + (size_t)buffer * PAGE, PAGE);
        put_buffer(buffer, false);
    }
    leave();
    return block >= 0;
}

void sys_write(int inode, int number, const char *from)
{
    enter(CALL_WRITE);
    bool add = true;
    int block = block_of(inode, number, &add);
    if (block < 0)
        die("a file is too long");
    int buffer = get_buffer(block, add);
    copy(buffers + (size_t)buffer * PAGE, from, PAGE);
    put_buffer(buffer, true);
    leave();
}
