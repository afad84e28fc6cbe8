/* Allocates by each `operator new`: 7 lists of 100 links, and 3 tables with an alignment and 2 that nothing has room for. */
#include <cstdint>
#include <cstdio>
#include <new>

struct Link {
    Link *next;
    long value;
};

struct alignas(64) Row {
    long value[8];
};

extern "C" __attribute__((noinline)) Link *make_list(long length)
{
    Link *list = nullptr;
    for (long i = 0; i < length; i++) {
        Link *link = i % 2 ? new Link : new (std::nothrow) Link;
        *link = {list, i};
        list = link;
    }
    return list;
}

extern "C" __attribute__((noinline)) Row *make_table(long rows, bool loud)
{
    Row *table = loud ? new Row[rows] : new (std::nothrow) Row[rows];
    for (long i = 0; table && i < rows; i++)
        table[i].value[i % 8] = i;
    return table;
}

int main()
{
    bool fine = true;
    for (int round = 0; round < 7; round++) {
        long expected = 99;
        for (Link *link = make_list(100), *next; link; link = next, expected--) {
            fine = fine && link->value == expected;
            next = link->next;
            delete link;
        }
    }
    for (int round = 0; round < 3; round++) {
        Row *table = make_table(1000, round == 1);
        fine = fine && (std::uintptr_t)table % 64 == 0 && table[999].value[7] == 999;
        delete[] table;
    }
    long none = INTPTR_MAX / sizeof(Row) / 4;
    fine = fine && make_table(none, false) == nullptr;
    try {
        make_table(none, true);
        fine = false;
    } catch (const std::bad_alloc &) {
    }
    delete[] new char[0];
    std::puts(fine ? "as it should be" : "not as it should be");
}
