# Debugging information with DEPTH functions, each inlined into the one before it.
        .text
        .globl  deep
        .type   deep, @function
deep:   ret
        .size   deep, . - deep
.Lend:
        .section .debug_abbrev,"",@progbits
        .uleb128 1              # a unit: its first address and its length
        .uleb128 0x11
        .byte   1
        .uleb128 0x11, 0x01, 0x12, 0x07, 0, 0
        .uleb128 2              # a function: the same
        .uleb128 0x2e
        .byte   1
        .uleb128 0x11, 0x01, 0x12, 0x07, 0, 0
        .uleb128 3              # a function that is inlined: nothing
        .uleb128 0x1d
        .byte   1
        .uleb128 0, 0, 0
        .section .debug_info,"",@progbits
        .long   .Lunit_end - .Lunit
.Lunit: .value  4
        .long   0
        .byte   8
        .uleb128 1
        .quad   deep, .Lend - deep
        .uleb128 2
        .quad   deep, .Lend - deep
        .fill   DEPTH, 1, 3
        .fill   DEPTH + 2, 1, 0
.Lunit_end:
        .section .note.GNU-stack,"",@progbits
