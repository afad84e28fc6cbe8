// Allocates by operators of C++, in the program and in the C++ library on its behalf; allocations that fail throw.
#include <cstdio>
#include <cstdint>
#include <new>
#include <string>
constexpr std::size_t PAGES = 100, PAGE = 4096;
struct alignas(64) Line { char bytes[64]; };
static __attribute__((noinline)) char *plain() { char *made = new char[PAGES * PAGE]; return made; }
static __attribute__((noinline)) Line *aligned() { Line *made = new Line[PAGES * PAGE / 64]; return made; }
static __attribute__((noinline)) std::string text() { std::string made(PAGES * PAGE - 100, 'x'); return made; }
int main(int count, char **) {
    char *block = plain();
    Line *lines = aligned();
    std::string letters = text();
    block[PAGES * PAGE - 1] = 7;
    lines[PAGES].bytes[3] = 8;
    std::printf("%d %d %zu\n", block[PAGES * PAGE - 1], int(reinterpret_cast<std::uintptr_t>(lines) % 64), letters.size());
    std::size_t impossible = std::size_t(count) << 60;
    try {
        std::printf("%p\n", static_cast<void *>(new char[impossible]));
    } catch (const std::bad_alloc &) {
        std::puts("bad_alloc");
    }
    std::printf("%d\n", new (std::nothrow) char[impossible] == nullptr);
    std::printf("%d\n", new (std::nothrow) char[0] != nullptr);
    delete[] block;
    delete[] lines;
}
