//! Contexts of `ucontext.h`. The C library has the kernel read and write their signal masks, which must be present on this node.
//!
//! A context that one thread has saved can go on in a thread of another node, so that nothing of these functions may be on its stack: they
//! end in a jump to the C library's.

use crate::io::Buffer;
use gondwana_interpose::NextFunction;
use libc::ucontext_t;
use std::arch::naked_asm;

/// Makes contexts present, and returns the address of the C library's function.
fn prepare(buffers: &[Buffer], function: &NextFunction) -> usize {
    crate::io::make_present(buffers);
    crate::next_function::address(function)
}

/// Defines exported functions on contexts: what they use, and how they find the C library's function.
macro_rules! contexts {
    ($(fn $name:ident by $preparing:ident($($argument:ident: $type:ty),*) { $($buffer:expr),* })*) => {$(
        unsafe extern "C" fn $preparing($($argument: $type),*) -> usize {
            static NEXT: NextFunction = NextFunction::new(gondwana_interpose::c_name!($name));
            prepare(&[$($buffer),*], &NEXT)
        }

        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() {
            naked_asm!(
                "push rdi",
                "push rsi",
                "sub rsp, 8",
                "call {preparing}",
                "add rsp, 8",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                preparing = sym $preparing,
            )
        }
    )*};
}

contexts! {
    fn getcontext by of_get(context: *mut ucontext_t) { Buffer::result(context) }
    fn setcontext by of_set(context: *const ucontext_t) { Buffer::value(context) }
    fn swapcontext by of_swap(old: *mut ucontext_t, new: *const ucontext_t) { Buffer::result(old), Buffer::value(new) }
}
