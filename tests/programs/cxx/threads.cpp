// std::thread: arguments by value and reference, member functions, lambdas, moving, ids.
#include "../harness.h"
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

static void add(std::vector<int> &to, int from, int count)
{
    for (int i = 0; i < count; i++)
        to[static_cast<std::size_t>(from + i)] = from + i;
}

struct Greeter {
    std::string name;
    void greet(std::string *out) const
    {
        *out = "hello from a thread that was given the name " + name;
    }
};

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    std::vector<int> numbers(static_cast<std::size_t>(threads) * 1000);
    std::vector<std::thread> team;
    for (int i = 0; i < threads; i++)
        team.emplace_back(add, std::ref(numbers), i * 1000, 1000);
    for (std::thread &t : team)
        t.join();
    long sum = std::accumulate(numbers.begin(), numbers.end(), 0L);
    EXPECT(threads * 1000L * (threads * 1000L - 1) / 2, sum);

    Greeter greeter{"Ada"};
    std::string text;
    std::thread member(&Greeter::greet, &greeter, &text);
    std::thread moved = std::move(member);
    REQUIRE(!member.joinable() && moved.joinable());
    REQUIRE(moved.get_id() != std::this_thread::get_id());
    moved.join();
    REQUIRE(text == "hello from a thread that was given the name Ada");

    int local = 0;
    std::thread([&local] { local = 5; }).join();
    EXPECT(5, local);
    return pass();
}
