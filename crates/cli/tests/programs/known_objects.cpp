// Objects and containers that functions of their own make, on all nodes.
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

struct Item {
    char bytes[200];
};

std::vector<int> *numbers;
static std::mutex mutex;
static std::vector<Item *> items;

[[gnu::noinline]] static std::vector<int> *make_numbers()
{
    auto *made = new std::vector<int>;
    made->resize(5000);
    return made;
}

[[gnu::noinline]] static Item *make_item()
{
    Item *made = new Item;
    made->bytes[0] = 1;
    return made;
}

[[gnu::noinline]] static long *make_array(int length)
{
    long *made = new long[length];
    made[0] = length;
    return made;
}

static void work(int self)
{
    Item *item = make_item();
    long *array = make_array(1000 + self);
    std::lock_guard<std::mutex> guard(mutex);
    items.push_back(item);
    (*numbers)[self] = static_cast<int>(array[0]);
}

int main()
{
    numbers = make_numbers();
    std::vector<std::thread> threads;
    for (int self = 0; self < 4; self++)
        threads.emplace_back(work, self);
    for (auto &thread : threads)
        thread.join();
    long sum = 0;
    for (int number : *numbers)
        sum += number;
    std::printf("%zu items, %ld\n", items.size(), sum);
}
