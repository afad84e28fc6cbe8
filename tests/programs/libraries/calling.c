/* A library that makes system calls by the instruction itself. */
#include "../by_instruction.h"

long call_in_library(long number, long a, long b, long c)
{
    return kernel_call(number, a, b, c, 0, 0, 0);
}
