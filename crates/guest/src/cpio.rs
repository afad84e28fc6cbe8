//! Archives in the format `newc` of cpio, from which the kernel fills its first file system.

/// An archive to which entries are appended; a folder must come before what is in it.
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

/// The name of the entry that ends an archive.
const END: &str = "TRAILER!!!";

impl Archive {
    /// An empty archive.
    pub(crate) fn new() -> Self {
        Self { bytes: vec![], entries: 0 }
    }

    /// Appends a file, a folder or a link. `mode` has the bits of `st_mode`, with those of the type.
    pub(crate) fn append(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("the format has 32 bits for a length");
        // Inode, mode, user, group, links, time, size, device (2), device of a special file (2), name with its
        // closing zero, checksum.
        let fields =
            [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, u32::try_from(name.len() + 1).unwrap(), 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.append(END, 0, &[]);
        self.bytes
    }

    /// Names and contents begin at multiples of four.
    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::Archive;

    /// Compared with what GNU cpio writes for the same file, except for inode and time.
    #[test]
    fn an_entry_is_laid_out_as_the_format_says() {
        let mut archive = Archive::new();
        archive.append("abc", 0o100644, b"hello");
        let bytes = archive.finish();
        let header = "070701\
            00000001000081a40000000000000000000000010000000000000005\
            000000000000000000000000000000000000000400000000";
        let end = [header.as_bytes(), b"abc\0\0\0", b"hello\0\0\0"].concat();
        assert_eq!(&bytes[..end.len()], end);
        assert!(bytes[end.len()..].ends_with(b"TRAILER!!!\0\0\0\0"));
        assert_eq!(bytes.len() % 4, 0);
    }
}
