/* Directories that one thread has opened and others read. */
#include "../harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 300 };

static char path[] = "/tmp/directories_of_others.XXXXXX";
static DIR *directory;
static bool seen[FILES];
static long place;
static struct dirent *last;

/* Notes an entry; false for the directory itself and its parent. */
static bool note(const struct dirent *entry)
{
    int number;
    if (entry->d_name[0] == '.')
        return false;
    EXPECT(1, sscanf(entry->d_name, "file%d", &number));
    REQUIRE(number >= 0 && number < FILES && !seen[number]);
    REQUIRE(entry->d_ino != 0 && (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN));
    seen[number] = true;
    return true;
}

static long reads_some(void)
{
    long count = 0;
    while (count < 20)
        count += note(readdir(directory));
    place = telldir(directory);
    last = readdir(directory);
    REQUIRE(last);
    char name[256];
    strcpy(name, last->d_name);
    seekdir(directory, place);
    EXPECT(0, strcmp(readdir64(directory)->d_name, name));
    seekdir(directory, place);
    return count;
}

static long reads_rest(void)
{
    long count = 0;
    struct dirent entry, *result;
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    EXPECT(0, readdir_r(directory, &entry, &result));
    REQUIRE(result == &entry);
    count += note(result);
    errno = 0;
    while ((result = readdir(directory)))
        count += note(result);
    EXPECT(0, errno);
    EXPECT(0, readdir_r(directory, &entry, &result));
    REQUIRE(result == NULL && readdir(directory) == NULL);
    return count;
}

static long begins_again(void)
{
    rewinddir(directory);
    memset(seen, 0, sizeof seen);
    return dirfd(directory) >= 0;
}

static long counts(int self)
{
    long count = self * 0;
    struct dirent entry, *result;
    for (;;) {
        EXPECT(0, readdir_r(directory, &entry, &result));
        if (!result)
            return count;
        count += result->d_name[0] != '.';
    }
}

static long closes(void)
{
    return closedir(directory);
}

static long cannot_open(void)
{
    errno = 0;
    REQUIRE(opendir("/no/such/directory") == NULL);
    EXPECT(ENOENT, errno);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    char name[64];
    REQUIRE(mkdtemp(path));
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%s/file%d", path, i);
        int file = open(name, O_CREAT | O_WRONLY, 0600);
        REQUIRE(file >= 0);
        close(file);
    }
    directory = opendir(path);
    REQUIRE(directory);
    long count = in_new_thread(reads_some);
    count += in_new_thread(reads_rest);
    EXPECT(FILES, count);
    EXPECT(true, in_new_thread(begins_again));
    count = 0;
    for (struct dirent *entry; (entry = readdir(directory));)
        count += note(entry);
    EXPECT(FILES, count);
    rewinddir(directory);
    EXPECT(FILES, run_threads(threads, counts));
    EXPECT(0, in_new_thread(closes));
    in_new_thread(cannot_open);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%s/file%d", path, i);
        EXPECT(0, unlink(name));
    }
    EXPECT(0, rmdir(path));
    return pass();
}
