//! Lines for the user, from inside of a program.

use std::os::fd::RawFd;

/// Writes a line that begins with `gondwana: `, in one piece. By system call: `write` may be a function that the
/// library stands in front of. Errors are ignored.
pub fn write_line(descriptor: RawFd, text: &str) {
    let line = format!("gondwana: {text}\n");
    // SAFETY: the kernel reads as many bytes as it is told.
    unsafe { gondwana_sys::syscall!(libc::SYS_write, descriptor, line.as_ptr(), line.len()) };
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_line_names_the_project() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        super::write_line(writer.as_raw_fd(), "no memory");
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "gondwana: no memory\n");
    }
}
