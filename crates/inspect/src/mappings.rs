//! The mappings of a process.

use std::fs;
use std::io;
use std::ops::Range;

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub addresses: Range<u64>,
    /// Where it begins in its file.
    pub offset: u64,
    /// Device and inode of its file.
    pub file: (String, u64),
    pub is_shared: bool,
    /// The path of its file, or the kernel's name for it; empty if there is none.
    pub path: String,
}

/// The mappings of a process, in the order of their addresses.
pub(crate) fn of(process: u32) -> io::Result<Vec<Mapping>> {
    let text = fs::read(format!("/proc/{process}/maps"))?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(parse).collect())
}

/// Reads a line such as `7f00-7f10 r-xp 00001000 fe:01 1234    /lib/libc.so.6`.
fn parse(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let mut fields = rest.splitn(5, ' ');
    let (rights, offset, device, inode) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    Some(Mapping {
        addresses: hex(start)?..hex(end)?,
        offset: hex(offset)?,
        file: (device.to_owned(), inode.parse().ok()?),
        is_shared: rights.ends_with('s'),
        path: fields.next().unwrap_or_default().trim_start().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line = "7f00-7f10 r-xp 00001000 fe:01 1234                       /lib/a b.so";
        let expected = Mapping {
            addresses: 0x7f00..0x7f10,
            offset: 0x1000,
            file: ("fe:01".to_owned(), 1234),
            is_shared: false,
            path: "/lib/a b.so".to_owned(),
        };
        assert_eq!(parse(line), Some(expected));
        let line = "1000-2000 rw-s 00000000 00:01 5 ";
        assert_eq!(parse(line).map(|mapping| (mapping.path, mapping.is_shared)), Some((String::new(), true)));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn this_process_has_a_stack_and_a_program() {
        let all = of(std::process::id()).unwrap();
        let exe = std::env::current_exe().unwrap();
        assert!(all.iter().any(|mapping| mapping.path == "[stack]"));
        assert!(all.iter().any(|mapping| std::path::Path::new(&mapping.path) == exe));
    }
}
