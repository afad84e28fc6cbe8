/* What the C and C++ libraries call at the end and in trouble is the process's, whoever has set it. */
#include "../harness.h"
#include <exception>
#include <memory_resource>
#include <new>
#include <thread>

static int order;
static std::terminate_handler terminators[2];

static void at_end(void)
{
    printf("atexit %d\n", order++);
}

static void on_end(int status, void *argument)
{
    printf("on_exit %d: %ld, status %d\n", order++, (long)argument, status);
}

static void first_handler()
{
}

static void second_handler()
{
}

/* Counts what it hands out, to one thread at a time. */
struct Counting : std::pmr::memory_resource {
    int blocks = 0;
    void *do_allocate(size_t bytes, size_t align) override
    {
        blocks++;
        return std::pmr::new_delete_resource()->allocate(bytes, align);
    }
    void do_deallocate(void *block, size_t bytes, size_t align) override
    {
        std::pmr::new_delete_resource()->deallocate(block, bytes, align);
    }
    bool do_is_equal(const memory_resource &other) const noexcept override { return this == &other; }
};

/* Calls it in a new thread: each on the next node. */
template <typename Function> static void in_thread(Function function)
{
    std::thread(function).join();
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    for (int i = 0; i < threads; i++) {
        in_thread([i] { EXPECT(0, i % 2 ? atexit(at_end) : on_exit(on_end, (void *)(long)i)); });
        auto handler = i % 2 ? first_handler : second_handler, before = i % 2 ? second_handler : first_handler;
        in_thread([=] { REQUIRE(std::set_terminate(handler) == before || i == 0); });
        in_thread([=] { REQUIRE(std::set_new_handler(handler) == (i == 0 ? nullptr : before)); });
        for (int j = 0; j < threads; j++)
            in_thread([=] { REQUIRE(std::get_terminate() == handler && std::get_new_handler() == handler); });
        REQUIRE(std::get_terminate() == handler && std::get_new_handler() == handler);
        static Counting resources[2];
        Counting &resource = resources[i % 2];
        in_thread([&] {
            auto *former = std::pmr::set_default_resource(&resource);
            REQUIRE(former == (i == 0 ? std::pmr::new_delete_resource() : &resources[1 - i % 2]));
        });
        int former = resource.blocks;
        for (int j = 0; j < threads; j++)
            in_thread([] { std::pmr::get_default_resource()->deallocate(std::pmr::get_default_resource()->allocate(8), 8); });
        EXPECT(former + threads, resource.blocks);
    }
    return pass();
}
