// A library of the program's own has a global map, filled by constructors and used by threads everywhere.
#include "../harness.h"
#include "../libraries/registry.hpp"
#include <mutex>

struct Numbered : Shape {
    int number;
    explicit Numbered(int n) : number(n) {}
    int corners() const override { return number; }
};

static std::mutex mutex;

static long work(int self)
{
    long violations = 0;
    for (int round = 0; round < 20; round++) {
        std::lock_guard<std::mutex> guard(mutex);
        violations += shapes().at("square")->corners() != 4;
        shapes()[std::to_string(self * 1000 + round)] = std::make_unique<Numbered>(self);
    }
    std::lock_guard<std::mutex> guard(mutex);
    shapes().erase(std::to_string(self * 1000));
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    long violations = run_threads(threads, work);
    EXPECT(2 + 19 * threads, shapes().size());
    long sum = 0;
    for (auto &entry : shapes())
        sum += entry.second->corners();
    EXPECT(7 + 19 * threads * (threads - 1) / 2, sum);
    return verdict(violations, "a shape was not common");
}
