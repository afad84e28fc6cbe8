//! Functions of any number of words.

/// Defines functions with three arguments and any number of further words: they call others, with the three, where the first three words are that
/// come in registers, and where those on the stack are.
#[macro_export]
macro_rules! variadic_words {
    ($($(#[$meta:meta])* $name:ident by $function:ident;)*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "push rbp",
                "mov rbp, rsp",
                "sub rsp, 32",
                "mov [rsp], rcx",
                "mov [rsp + 8], r8",
                "mov [rsp + 16], r9",
                "mov rcx, rsp",
                "lea r8, [rbp + 16]",
                "call {}",
                "mov rsp, rbp",
                "pop rbp",
                "ret",
                sym $function
            )
        }
    )*};
}
