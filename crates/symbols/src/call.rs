//! Calls in the code of x86-64.

/// Bytes of the longest call, without prefixes.
pub(crate) const LONGEST: u64 = 7;

/// True if some code ends with a call, so that its end is a return address.
pub(crate) fn ends_with_call(code: &[u8]) -> bool {
    let is_direct = |call: &[u8]| call.len() == 5 && call[0] == 0xe8;
    (0..code.len()).any(|start| is_direct(&code[start..]) || is_indirect(&code[start..]))
}

/// True for a call by a register or by a pointer in memory.
fn is_indirect(call: &[u8]) -> bool {
    let &[0xff, operand, ref rest @ ..] = call else { return false };
    let (mode, base) = (operand >> 6, operand & 7);
    let scaled = mode != 3 && base == 4;
    let is_absolute = match scaled {
        true => rest.first().is_some_and(|scale| scale & 7 == 5),
        false => base == 5,
    };
    let displacement = match mode {
        0 if is_absolute => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    operand >> 3 & 7 == 2 && rest.len() == usize::from(scaled) + displacement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_known_by_their_ends() {
        for (code, is_call) in [
            (&[0x48, 0x89, 0xe8, 0x11, 0xfe, 0xff, 0xff][..], true), // call rel32
            (&[0x89, 0xe8, 0x11, 0xfe, 0xff], false),                // the same but for its last byte
            (&[0x41, 0xff, 0xd4], true),                             // call r12
            (&[0xff, 0x10], true),                                   // call [rax]
            (&[0xff, 0x50, 0x18], true),                             // call [rax+0x18]
            (&[0xff, 0x15, 0x3a, 0x2f, 0x00, 0x00], true),           // call [rip+0x2f3a]
            (&[0xff, 0x14, 0xc2], true),                             // call [rdx+rax*8]
            (&[0xff, 0x94, 0xc2, 0x00, 0x01, 0x00, 0x00], true),     // call [rdx+rax*8+0x100]
            (&[0xff, 0x14, 0xc5, 0x00, 0x40, 0x40, 0x00], true),     // call [rax*8+0x404000]
            (&[0xff, 0x25, 0x3a, 0x2f, 0x00, 0x00], false),          // jmp [rip+0x2f3a]
            (&[0xfe, 0xff, 0xff, 0x90], false),                      // the end of one, and nop
            (&[0x66, 0x90], false),
            (&[], false),
        ] {
            assert_eq!(ends_with_call(code), is_call, "{code:x?}");
        }
    }
}
