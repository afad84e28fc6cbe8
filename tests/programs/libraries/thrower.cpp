// A library for dlopen without variables: it throws.
#include <stdexcept>
#include <string>

extern "C" int checked(int value)
{
    std::string text = "too large: " + std::to_string(value);
    if (value > 10)
        throw std::out_of_range(text);
    return value + 1;
}
