//! Which code makes atomic operations on memory that threads share, as recordings name code.

use crate::imports::Imports;
use crate::scan::is_lockable;
use gondwana_elf::{Code, Error};
use iced_x86::{Decoder, DecoderOptions, FlowControl};

/// How the functions begin that programs for the simulator call for atomic operations.
const SIMULATED: &str = "__tsan_atomic";

/// True if the instruction whose code begins with `code`, at an address, changes memory of all threads in one step. What locks the top of the
/// thread's stack is a fence.
#[must_use]
pub fn is_atomic(address: u64, code: &[u8]) -> bool {
    is_lockable(&Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode())
}

/// Where a program that is compiled for the simulator calls its atomic operations, loads and stores among them: the last bytes of the calls, in
/// ascending order. None of other programs.
///
/// # Errors
/// If the file is no ELF file, or a damaged one.
pub fn simulated_operations(image: &[u8]) -> Result<Vec<u64>, Error> {
    let code = Code::parse(image)?;
    if !code.uses_any(|name| name.starts_with(SIMULATED)) {
        return Ok(vec![]);
    }
    let imports = Imports::of(&code);
    let mut found = vec![];
    for section in &code.sections {
        let decoder = Decoder::with_ip(64, section.bytes, section.address, DecoderOptions::NONE);
        let calls = decoder.into_iter().filter(|instruction| {
            matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
        });
        let atomic =
            calls.filter(|call| imports.callee(call).is_some_and(|name| name.starts_with(SIMULATED)));
        found.extend(atomic.map(|call| call.next_ip() - 1));
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_memory_in_one_step_is_atomic() {
        // lock add [rdi], eax; xchg [rdi], eax; lock cmpxchg16b [rdi]; lock add dword [rip+0x1000], 1.
        let atomic: [&[u8]; 4] = [
            &[0xf0, 0x01, 0x07],
            &[0x87, 0x07],
            &[0xf0, 0x48, 0x0f, 0xc7, 0x0f],
            &[0xf0, 0x83, 0x05, 0x00, 0x10, 0, 0, 1],
        ];
        assert!(atomic.iter().all(|code| is_atomic(0x40_0000, code)));
        // add [rdi], eax; mov [rdi], eax; xchg eax, ebx; lock or qword [rsp], 0, a fence; one that is cut off; nothing.
        let others: [&[u8]; 6] = [
            &[0x01, 0x07],
            &[0x89, 0x07],
            &[0x87, 0xd8],
            &[0xf0, 0x48, 0x83, 0x0c, 0x24, 0],
            &[0xf0, 0x83],
            &[],
        ];
        assert!(!others.iter().any(|code| is_atomic(0x40_0000, code)));
    }
}
