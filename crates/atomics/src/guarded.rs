//! The code that is executed in place of an instruction with which threads may synchronise: it looks whether the page is known as one on which
//! they do, and goes on in a copy of the instruction.

use crate::site::Site;
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};

/// Bytes of the code for one instruction, at most.
pub const MOST_GUARDED: usize = 176;

const PAGE_SIZE: u32 = 4096;

/// Entries of the table of known pages, which is indexed by the lowest bits of the pages' numbers and holds the numbers.
pub const KNOWN_PAGES: usize = 1 << 16;

/// What has been pushed when the address is computed, with the bytes behind the stack pointer that functions use.
const PUSHED: u64 = 128 + 3 * 8;

/// Skips what functions use behind the stack pointer, and keeps three registers.
const SAVE: [u8; 8] = [0x48, 0x8d, 0x64, 0x24, 0x80, 0x50, 0x51, 0x52];
/// `lahf; seto al; push rax`: the flags.
const SAVE_FLAGS: [u8; 5] = [0x9f, 0x0f, 0x90, 0xc0, 0x50];
/// `mov edx, ecx; and edx, 4095; cmp edx, ...` with four bytes.
const PLACE_IN_PAGE: [u8; 10] = [0x89, 0xca, 0x81, 0xe2, 0xff, 0x0f, 0, 0, 0x81, 0xfa];
/// `ja` by a distance of one byte.
const IF_ABOVE: u8 = 0x77;
/// `mov rax, ...` with eight bytes.
const TABLE: [u8; 2] = [0x48, 0xb8];
/// `shr rcx, 12; movzx edx, cx; cmp [rax + rdx * 8], rcx`.
const LOOK: [u8; 11] = [0x48, 0xc1, 0xe9, 12, 0x0f, 0xb7, 0xd1, 0x48, 0x39, 0x0c, 0xd0];
/// `jne` by a distance of one byte.
const UNLESS_KNOWN: u8 = 0x75;
/// `pop rax; add al, 127; sahf; pop rdx; pop rcx; pop rax; lea rsp, [rsp + 128]`.
const RESTORE: [u8; 15] = [0x58, 0x04, 0x7f, 0x9e, 0x5a, 0x59, 0x58, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
/// `jmp [rip]`.
const JUMP_FAR: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];
/// `int3`.
const TRAP: u8 = 0xcc;

/// The code, for one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// It begins with instructions that are before the one concerned.
    pub code: Vec<u8>,
    /// Where the copy of the instruction is in it.
    pub copy: usize,
    /// Where it traps if the page is not known or not the only one, with the registers that the instruction is to find.
    pub trap: usize,
}

impl Site {
    /// The code to be executed in place of `before`, which means the same anywhere, and of the instruction, whose code begins with `code`.
    /// It will be `at` an address, and the table of known pages at another one. `None` if that is too far from memory that the instruction
    /// names relative to itself.
    #[must_use]
    pub fn guarded(&self, before: &[u8], code: &[u8], at: u64, table: u64) -> Option<Guarded> {
        let mut all = [before, &SAVE].concat();
        let address = self.load_address(at + all.len() as u64)?;
        all.extend(address);
        all.extend(SAVE_FLAGS);
        all.extend(PLACE_IN_PAGE);
        all.extend((PAGE_SIZE - self.bytes()).to_le_bytes());
        let if_across = all.len();
        all.extend([IF_ABOVE, 0]);
        all.extend(TABLE);
        all.extend(table.to_le_bytes());
        all.extend(LOOK);
        let unless_known = all.len();
        all.extend([UNLESS_KNOWN, 0]);
        all.extend(RESTORE);
        let copy = all.len();
        all.extend(self.moved(code, at + copy as u64)?);
        all.extend(JUMP_FAR);
        all.extend(self.next().to_le_bytes());
        for jump in [if_across, unless_known] {
            all[jump + 1] = u8::try_from(all.len() - (jump + 2)).ok()?;
        }
        all.extend(RESTORE);
        let trap = all.len();
        all.push(TRAP);
        (all.len() <= MOST_GUARDED).then_some(Guarded { code: all, copy, trap })
    }

    /// `lea rcx, ...` of the memory that the instruction names, to be executed at an address with the stack as it is then.
    fn load_address(&self, at: u64) -> Option<Vec<u8>> {
        let instruction = self.instruction();
        let base = instruction.memory_base();
        let mut distance = instruction.memory_displacement64();
        if base == Register::RSP {
            distance = distance.wrapping_add(PUSHED);
        }
        let memory = MemoryOperand::with_base_index_scale_displ_size(
            base,
            instruction.memory_index(),
            instruction.memory_index_scale(),
            distance.cast_signed(),
            8,
        );
        let lea = Instruction::with2(Code::Lea_r64_m, Register::RCX, memory).ok()?;
        let mut encoder = Encoder::new(64);
        encoder.encode(&lea, at).ok()?;
        Some(encoder.take_buffer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    const AT: u64 = 0x40_0000;
    const TABLE_AT: u64 = 0x7000_0000_0000;

    fn decoded(code: &[u8]) -> Vec<Instruction> {
        Decoder::with_ip(64, code, AT, DecoderOptions::NONE).into_iter().collect()
    }

    #[test]
    fn the_code_looks_at_the_address_and_goes_on_behind_the_instruction() {
        // lock xadd [rdx], eax; lock add [rsp + 8], ecx; lock cmpxchg16b [rdi]; xchg [rbx + rax * 8], rcx; lock dec dword [rip + 0x1000].
        let forms: [&[u8]; 5] = [
            &[0xf0, 0x0f, 0xc1, 0x02],
            &[0xf0, 0x01, 0x4c, 0x24, 0x08],
            &[0xf0, 0x48, 0x0f, 0xc7, 0x0f],
            &[0x48, 0x87, 0x0c, 0xc3],
            &[0xf0, 0xff, 0x0d, 0x00, 0x10, 0, 0],
        ];
        for form in forms {
            let place = AT + 0x10_0000;
            let site = Site::synchronising(place, form).unwrap();
            // mov eax, 1
            let before = [0xb8, 1, 0, 0, 0];
            let Guarded { code, copy, trap } = site.guarded(&before, form, AT, TABLE_AT).unwrap();
            let all = decoded(&code[..copy]);
            assert!(all.iter().all(|one| !one.is_invalid()), "{form:x?}");
            assert_eq!(all[0].mnemonic(), Mnemonic::Mov);
            let lea = all
                .iter()
                .rfind(|one| one.op0_register() == Register::RCX && one.mnemonic() == Mnemonic::Lea);
            let (lea, own) = (lea.unwrap(), site.instruction());
            assert_eq!((lea.memory_base(), lea.memory_index()), (own.memory_base(), own.memory_index()));
            let pushed = if own.memory_base() == Register::RSP { PUSHED } else { 0 };
            assert_eq!(lea.memory_displacement64(), own.memory_displacement64() + pushed);
            let jumps: Vec<u64> =
                all.iter().map(Instruction::near_branch_target).filter(|&to| to != 0).collect();
            let slow = AT + trap as u64 - RESTORE.len() as u64;
            assert_eq!(jumps, [slow, slow]);
            assert_eq!(code[trap], TRAP);
            let moved = Site::synchronising(AT + copy as u64, &code[copy..]).unwrap();
            assert_eq!(moved.memory(|number| number as u64), site.memory(|number| number as u64));
            let end = copy + form.len();
            assert_eq!(code[end..end + 6], JUMP_FAR);
            assert_eq!(code[end + 6..end + 14], site.next().to_le_bytes());
        }
    }

    #[test]
    fn memory_too_far_away_is_said_to_be() {
        let code = [0xf0, 0xff, 0x0d, 0x00, 0x10, 0, 0];
        let site = Site::synchronising(AT, &code).unwrap();
        assert_eq!(site.guarded(&[], &code, AT + (1 << 33), TABLE_AT), None);
    }
}
