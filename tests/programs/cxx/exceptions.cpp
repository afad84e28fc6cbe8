// Exceptions across many frames in threads, with destructors on the way, rethrown and moved between threads.
#include "../harness.h"
#include <exception>
#include <stdexcept>
#include <string>

static long destroyed[MAX_THREADS];
static std::exception_ptr kept[MAX_THREADS];

struct Guard {
    int self;
    ~Guard()
    {
        destroyed[self]++;
    }
};

static int deep(int self, int depth)
{
    Guard guard{self};
    if (depth == 0)
        throw std::runtime_error("thrown by thread " + std::to_string(self));
    return deep(self, depth - 1) + 1;
}

static long work(int self)
{
    long violations = 0;
    for (long i = 0; i < iterations; i++) {
        try {
            try {
                deep(self, 30);
                violations++;
            } catch (const std::logic_error &) {
                violations++;
            } catch (...) {
                throw;
            }
        } catch (const std::exception &e) {
            violations += e.what() != "thrown by thread " + std::to_string(self);
            kept[self] = std::current_exception();
        }
    }
    violations += destroyed[self] != 31 * iterations;
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 100);
    long violations = run_threads(threads, work);
    for (int i = 0; i < threads; i++)
        try {
            std::rethrow_exception(kept[i]);
        } catch (const std::runtime_error &e) {
            violations += e.what() != "thrown by thread " + std::to_string(i);
        }
    return verdict(violations, "an exception went wrong");
}
