/* An allocator with operators of C++, as jemalloc is: `new` takes from its own memory, plain `delete` calls the library's `free` as any
 * caller does, and `delete` of a known size does not. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

alignas(64) char memory[1 << 22];
std::size_t used;

void *take(std::size_t size)
{
    std::size_t at = __atomic_fetch_add(&used, (size + 63) / 64 * 64, __ATOMIC_RELAXED);
    if (at + size > sizeof memory)
        throw std::bad_alloc();
    return memory + at;
}

bool is_own(const void *block)
{
    auto at = reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(memory);
    return at < sizeof memory;
}

void give_back(const void *block)
{
    if (block && !is_own(block)) {
        std::fputs("not a block of this allocator\n", stderr);
        std::abort();
    }
}

} // namespace

extern "C" {
void *malloc(std::size_t size) { return take(size); }
void free(void *block) { give_back(block); }
void *calloc(std::size_t count, std::size_t size) { return take(count * size); }
void *realloc(void *block, std::size_t size)
{
    void *bigger = take(size);
    /* What is behind the block is the allocator's, too. */
    if (block)
        __builtin_memcpy(bigger, block, size);
    return bigger;
}
}

void *operator new(std::size_t size) { return take(size); }
void *operator new[](std::size_t size) { return take(size); }
void operator delete(void *block) noexcept { std::free(block); }
void operator delete[](void *block) noexcept { std::free(block); }
void operator delete(void *block, std::size_t) noexcept { give_back(block); }
void operator delete[](void *block, std::size_t) noexcept { give_back(block); }
