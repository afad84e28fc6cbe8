// std::call_once (with an exception that makes it start again) and function-local statics.
#include "../harness.h"
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

static std::once_flag flag;
static int attempts, completed;
static std::mutex mutex;
static std::vector<std::string> table;
static const std::vector<std::string> *addresses[MAX_THREADS];
static int constructed;

struct Counted {
    std::vector<std::string> words;
    Counted()
    {
        constructed++;
        for (int i = 0; i < 500; i++)
            words.push_back("word " + std::to_string(i));
    }
};

static const Counted &instance()
{
    static Counted counted;
    return counted;
}

static int throws_twice()
{
    static int value = [] {
        std::lock_guard<std::mutex> guard(mutex);
        if (++attempts <= 2)
            throw std::runtime_error("not yet");
        return 77;
    }();
    return value;
}

static void fill()
{
    if (++completed == 1)
        throw std::runtime_error("first attempt fails");
    for (int i = 0; i < 100; i++)
        table.push_back(std::to_string(i));
}

static long work(int self)
{
    long exceptions = 0;
    for (bool done = false; !done;)
        try {
            std::call_once(flag, fill);
            done = true;
        } catch (const std::runtime_error &) {
            exceptions++;
        }
    REQUIRE(table.size() == 100 && table[99] == "99");
    addresses[self] = &instance().words;
    REQUIRE(instance().words.size() == 500 && instance().words[499] == "word 499");
    for (bool done = false; !done;)
        try {
            EXPECT(77, throws_twice());
            done = true;
        } catch (const std::runtime_error &) {
            exceptions++;
        }
    return exceptions;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    long exceptions = run_threads(threads, work);
    EXPECT(3, exceptions);
    EXPECT(2, completed);
    EXPECT(3, attempts);
    EXPECT(1, constructed);
    for (int i = 1; i < threads; i++)
        REQUIRE(addresses[i] == addresses[0]);
    return pass();
}
