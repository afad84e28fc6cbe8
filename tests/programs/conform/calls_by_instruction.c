/* The calls of calls_by_number by the instruction itself, without the C library. */
#include "../by_instruction.h"
#include <unistd.h>
#define syscall CALL
#include "calls_by_number.c"
