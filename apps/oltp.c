/* A model of on-line transaction processing: new orders and payments as in TPC-C, in a database that lies in a shared pool of
 * buffers.
 *
 * Rows of warehouses, districts, customers and stock, and an index of the stock that nobody writes, lie in buffers. Each buffer has a
 * latch in its header, which a transaction holds while it works on a row; a row is found by way of the index. A transaction
 * writes a record into a strand of the common log, works on memory of its thread's own, and then waits for its log record to be on disk. What
 * is written passes from thread to thread: the headers, the districts and warehouses, the ends of the strands. What is read only,
 * the index and the names in rows, does not.
 *
 * Main fills the pool. Each of the `-t` transactions has random numbers of its own, and takes what it needs from the rows
 * whatever the order: so the sums do not depend on the threads. With -c they are compared with each other: orders of districts
 * with stock that was taken, payments of customers with what warehouses and districts got.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct option_spec specs[] = {
    {'t', "transactions", 2000, 200000, 1, 100000000, 0},
    {'w', "warehouses", 4, 16, 1, 256, 0},
    {'d', "time for which a transaction waits for the disk, in microseconds", 0, 200, 0, 1000000, 0},
};
static struct app app = {"oltp", "on-line transaction processing", specs, 3, NULL, NULL};

enum {
    BUFFER = 2048,      /* bytes of a buffer, with its header */
    DISTRICTS = 10,     /* of a warehouse */
    CUSTOMERS = 60,     /* of a district */
    STOCK = 1000,       /* items of a warehouse */
    MOST_ITEMS = 15,    /* of an order */
    LEAST_ITEMS = 5,
    FAN = 16,           /* children of a node of the index */
    STRANDS = 16,       /* of the log, by warehouse */
    LOG = 1 << 13,      /* words of a strand, which goes round */
    RECORD = 16,        /* words of a record */
    OWN = 1 << 11,      /* words of a thread's own memory */
    WORK = 192,         /* of these, words that a transaction uses */
};

struct header {
    pthread_spinlock_t latch;
    long version;
};

struct warehouse {
    long paid;
    char name[120];
};

struct district {
    long orders, paid;
    char name[112];
};

struct customer {
    long balance, payments;
    char name[240];
};

struct stock {
    long quantity, taken;
    char name[112];
};

struct table {
    size_t row;          /* bytes of a row */
    long rows, per_buffer;
    char *first;         /* buffer */
};

static struct table warehouses = {sizeof(struct warehouse), 0, 1, NULL};
static struct table districts = {sizeof(struct district), 0, 1, NULL};
static struct table customers = {sizeof(struct customer), 0, 0, NULL};
static struct table stocks = {sizeof(struct stock), 0, 0, NULL};

/* The index: keys of each node, the root first; the children of node n are those from FAN * n + 1 on. */
static struct node {
    long first[FAN];
} *nodes;
static long levels;

/* The latch and the end are in one line of a cache, the words in others. */
static struct {
    pthread_spinlock_t latch;
    long end, padding[6];
    long words[LOG];
} *journals;

static long *own_memory;
static struct {
    long worked, padding[15];
} *of_thread;

static struct header *header_of(const struct table *table, long row)
{
    return (struct header *)(table->first + row / table->per_buffer * BUFFER);
}

static void *row_of(const struct table *table, long row)
{
    return (char *)header_of(table, row) + 64 + (size_t)(row % table->per_buffer) * table->row;
}

/* Latches a row's buffer; returns the row. */
static void *take(const struct table *table, long row)
{
    struct header *header = header_of(table, row);
    pthread_spin_lock(&header->latch);
    header->version++;
    return row_of(table, row);
}

static void give_back(const struct table *table, long row)
{
    pthread_spin_unlock(&header_of(table, row)->latch);
}

/* Memory for `bytes` bytes, zeros, that begins with a page. */
static void *make_pages(size_t bytes)
{
    const size_t page = 8192;
    void *memory = aligned_alloc(page, (bytes + page - 1) / page * page);
    if (memory == NULL)
        die("there is no memory for %zu bytes", bytes);
    memset(memory, 0, bytes);
    return memory;
}

static void make_table(struct table *table, long rows)
{
    if (table->per_buffer == 0)
        table->per_buffer = (long)((BUFFER - 64) / table->row);
    table->rows = rows;
    long buffers = (rows + table->per_buffer - 1) / table->per_buffer;
    table->first = make_pages((size_t)buffers * BUFFER);
    for (long buffer = 0; buffer < buffers; buffer++)
        pthread_spin_init(&((struct header *)(table->first + buffer * BUFFER))->latch, PTHREAD_PROCESS_PRIVATE);
}

static void make_index(long rows)
{
    long width = 1, count = 1;
    for (levels = 1; width * FAN < rows; levels++) {
        width *= FAN;
        count += width;
    }
    nodes = make_pages((size_t)count * sizeof *nodes);
    long span = width * FAN, node = 0;
    for (long here = 1; here <= width; here *= FAN, span /= FAN)
        for (long at = 0; at < here; at++, node++)
            for (int key = 0; key < FAN; key++)
                nodes[node].first[key] = at * span + key * (span / FAN);
}

/* The row of a key, by way of the index. */
static long find(long key)
{
    long node = 0, child = 0;
    for (long level = 0; level < levels; level++) {
        for (child = 0; child + 1 < FAN && nodes[node].first[child + 1] <= key; child++)
            ;
        if (level + 1 < levels)
            node = node * FAN + 1 + child;
    }
    return nodes[node].first[child];
}

static long below(struct random *random, long limit)
{
    return (long)(random_bits(random) % (uint64_t)limit);
}

/* A checksum of a text that nobody writes. */
static long read_name(const char *name, size_t bytes)
{
    long sum = 0;
    for (size_t at = 0; at < bytes; at += 8)
        sum += name[at];
    return sum;
}

static void write_record(long strand, long what, long amount)
{
    __typeof__(journals) journal = &journals[strand % STRANDS];
    pthread_spin_lock(&journal->latch);
    long at = journal->end % LOG;
    journal->end += RECORD;
    pthread_spin_unlock(&journal->latch);
    /* Nobody else has this part until the log has gone round: a thread that slept so long would write an old record. */
    for (int word = 0; word < RECORD; word++)
        __atomic_store_n(&journal->words[at + word], what + word * amount, __ATOMIC_RELAXED);
}

static long new_order(struct random *random, long warehouse)
{
    long district = warehouse * DISTRICTS + below(random, DISTRICTS), seen = 0;
    struct district *to = take(&districts, district);
    to->orders++;
    seen += read_name(to->name, sizeof to->name);
    give_back(&districts, district);
    long items = LEAST_ITEMS + below(random, MOST_ITEMS - LEAST_ITEMS + 1);
    long from = below(random, STOCK);
    for (long item = 0; item < items; item++) {
        /* One latch is held at a time, so the order does not matter. */
        from += 1 + below(random, 1 + below(random, STOCK / MOST_ITEMS));
        long row = find(warehouse * STOCK + from % STOCK);
        struct stock *stock = take(&stocks, row);
        stock->quantity--;
        stock->taken++;
        seen += read_name(stock->name, sizeof stock->name);
        give_back(&stocks, row);
    }
    write_record(warehouse, district, items);
    return seen;
}

static long payment(struct random *random, long warehouse)
{
    long amount = 1 + below(random, 5000), district = warehouse * DISTRICTS + below(random, DISTRICTS);
    long customer = district * CUSTOMERS + below(random, CUSTOMERS), seen = 0;
    struct customer *by = take(&customers, customer);
    by->balance -= amount;
    by->payments++;
    seen += read_name(by->name, sizeof by->name);
    give_back(&customers, customer);
    ((struct district *)take(&districts, district))->paid += amount;
    give_back(&districts, district);
    struct warehouse *to = take(&warehouses, warehouse);
    to->paid += amount;
    seen += read_name(to->name, sizeof to->name);
    give_back(&warehouses, warehouse);
    write_record(warehouse, customer, amount);
    return seen;
}

static void work(int self)
{
    long transactions = specs[0].value, seen = 0;
    long *mine = own_memory + (long)self * OWN;
    for (int at = 0; at < OWN; at++)
        mine[at] = at;
    struct timespec disk = {0, specs[2].value * 1000};
    for (long number = self; number < transactions; number += threads) {
        struct random random = {(uint64_t)number * 7919 + 1};
        for (int skipped = 0; skipped < 4; skipped++)
            random_bits(&random);
        long warehouse = below(&random, specs[1].value);
        seen += random_bits(&random) % 2 ? new_order(&random, warehouse) : payment(&random, warehouse);
        for (long at = number % OWN, left = WORK; left > 0; left--, at = (at + 1) % OWN)
            mine[at] += seen;
        if (specs[2].value > 0)
            nanosleep(&disk, NULL);
    }
    of_thread[self].worked = seen;
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    long count = specs[1].value;
    make_table(&warehouses, count);
    make_table(&districts, count * DISTRICTS);
    make_table(&customers, count * DISTRICTS * CUSTOMERS);
    make_table(&stocks, count * STOCK);
    make_index(count * STOCK);
    journals = make_pages(STRANDS * sizeof *journals);
    for (int strand = 0; strand < STRANDS; strand++)
        pthread_spin_init(&journals[strand].latch, PTHREAD_PROCESS_PRIVATE);
    for (long row = 0; row < districts.rows; row++)
        memset(((struct district *)row_of(&districts, row))->name, (int)(row % 61), 112);
    for (long row = 0; row < warehouses.rows; row++)
        memset(((struct warehouse *)row_of(&warehouses, row))->name, (int)(row % 47), 120);
    for (long row = 0; row < customers.rows; row++)
        memset(((struct customer *)row_of(&customers, row))->name, (int)(row % 53), 240);
    for (long row = 0; row < stocks.rows; row++) {
        struct stock *stock = row_of(&stocks, row);
        stock->quantity = 1000000;
        memset(stock->name, (int)(row % 59), 112);
    }
    own_memory = must_alloc((size_t)threads * OWN * sizeof *own_memory);
    of_thread = must_alloc((size_t)threads * sizeof *of_thread);
    run_team(MAIN_WAITS, work);

    long orders = 0, taken = 0, missing = 0, payments = 0, balance = 0, to_districts = 0, to_warehouses = 0, seen = 0;
    uint64_t hash = HASH_START;
    for (long row = 0; row < districts.rows; row++) {
        struct district *district = row_of(&districts, row);
        orders += district->orders;
        to_districts += district->paid;
        hash = hash_bytes(hash, district, 2 * sizeof(long));
    }
    for (long row = 0; row < warehouses.rows; row++)
        to_warehouses += ((struct warehouse *)row_of(&warehouses, row))->paid;
    for (long row = 0; row < customers.rows; row++) {
        struct customer *customer = row_of(&customers, row);
        balance += customer->balance;
        payments += customer->payments;
        hash = hash_bytes(hash, customer, 2 * sizeof(long));
    }
    for (long row = 0; row < stocks.rows; row++) {
        struct stock *stock = row_of(&stocks, row);
        taken += stock->taken;
        missing += 1000000 - stock->quantity;
        hash = hash_bytes(hash, stock, 2 * sizeof(long));
    }
    for (int self = 0; self < threads; self++)
        seen += of_thread[self].worked;
    check(orders + payments == specs[0].value, "each transaction is an order or a payment");
    check(taken == missing && taken >= orders * LEAST_ITEMS && taken <= orders * MOST_ITEMS, "stock that was taken");
    check(-balance == to_districts && -balance == to_warehouses, "what customers paid is what others got");
    long written = 0;
    for (int strand = 0; strand < STRANDS; strand++)
        written += journals[strand].end;
    check(written == specs[0].value * RECORD, "a log record for each transaction");
    printf("result: %ld orders of %ld items, %ld payments of %ld, texts %ld, rows %016lx\n", orders, taken, payments,
           -balance, seen, (unsigned long)hash);
    return 0;
}
