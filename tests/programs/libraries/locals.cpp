// A library for dlopen that needs the C++ runtime: thread-local variables of all models, objects with constructors and
// destructors among them, exceptions, and a constructor that starts a thread.
#include "locals.h"
#include <cmath>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

static std::mutex mutex;
static long constructed, destroyed;
static int seven = 7;

extern "C" {
extern __thread int counter;
__thread int counter = 5;
}
static __thread int *pointer = &seven;
static __thread int table[100];
static __thread long quick_one __attribute__((tls_model("initial-exec"))) = 11;

namespace {
struct Named {
    std::string name = "a name that is too long for its own string";
    Named() { count(constructed); }
    ~Named()
    {
        if (name.size() == 42)
            count(destroyed);
    }
    static void count(long &what)
    {
        std::lock_guard<std::mutex> guard(mutex);
        what++;
    }
};

thread_local Named named;

int next() { return ++counter; }
int *address() { return &counter; }
long quick() { return ++quick_one; }
// Needs the mathematical library as well.
int pointed() { return static_cast<int>(std::lround(std::cbrt(std::pow(*pointer, 3)))); }

long sum(int index, int what)
{
    table[index] += what;
    long sum = 0;
    for (int value : table)
        sum += value;
    return sum;
}

int name(const char *wanted) { return named.name == wanted; }

int positive(int value)
{
    std::string text = "too large: " + std::to_string(value);
    if (value > 10)
        throw std::out_of_range(text);
    return value + 1;
}

int checked(int value)
{
    try {
        return positive(value);
    } catch (const std::out_of_range &error) {
        return error.what() == "too large: " + std::to_string(value) ? -1 : -2;
    }
}

long read(long &what)
{
    std::lock_guard<std::mutex> guard(mutex);
    return what;
}

// Nobody may wait for it in the constructor, because the C library's loader waits for that.
struct Starter {
    std::thread thread{[] { next(), name(""), checked(20), sum(1, 1); }};
    ~Starter()
    {
        if (thread.joinable())
            thread.join();
    }
} starter;

long made()
{
    if (starter.thread.joinable())
        starter.thread.join();
    return read(constructed);
}
long gone() { return read(destroyed); }
} // namespace

extern "C" {
extern const locals locals;
const struct locals locals = {next, address, quick, pointed, sum, name, checked, made, gone};
}
