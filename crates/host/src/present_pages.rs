//! Which pages of this process are there, many at a time.

use gondwana_page::to_usize;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// The argument of the request, as in the kernel's `linux/fs.h`.
#[repr(C)]
#[derive(Default)]
struct Argument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// A range that the kernel has found.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Area {
    start: u64,
    end: u64,
    categories: u64,
}

const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_PFNZERO: u64 = 1 << 5;
/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::c_ulong = 0xc000_0000 | (size_of::<Argument>() as libc::c_ulong) << 16 | 0x6610;

/// Visits the ranges of pages that have frames other than the zero page. Needs Linux 6.7.
pub fn present_pages(range: Range<usize>, mut visit: impl FnMut(Range<usize>)) -> io::Result<()> {
    let file = File::open("/proc/self/pagemap")?;
    let mut areas = [Area::default(); 256];
    let mut argument = Argument {
        size: size_of::<Argument>() as u64,
        start: range.start as u64,
        end: range.end as u64,
        vec: areas.as_mut_ptr() as u64,
        vec_len: areas.len() as u64,
        category_inverted: PAGE_IS_PFNZERO,
        category_mask: PAGE_IS_PRESENT | PAGE_IS_PFNZERO,
        return_mask: PAGE_IS_PRESENT,
        ..Argument::default()
    };
    while argument.start < argument.end {
        // SAFETY: the argument has the layout that the request wants and points to an array of the length it says.
        let found = unsafe {
            gondwana_sys::syscall!(libc::SYS_ioctl, file.as_raw_fd(), PAGEMAP_SCAN, &raw mut argument)
        };
        let found = usize::try_from(found).map_err(|_| io::Error::last_os_error())?;
        areas[..found].iter().for_each(|area| visit(to_usize(area.start)..to_usize(area.end)));
        argument.start = argument.walk_end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnonymousMemory, sys};
    use gondwana_page::PAGE_SIZE;

    #[test]
    fn touched_pages_are_there_and_pages_that_were_only_read_are_not() {
        let region = AnonymousMemory::new(1000 * PAGE_SIZE).unwrap();
        sys::without_huge_pages(&region.addresses()).unwrap();
        (0..1000).filter(|page| page % 3 == 1).for_each(|page| region.touch(page));
        // SAFETY: the page is readable.
        assert_eq!(unsafe { (region.address(2) as *const u8).read_volatile() }, 0);
        let mut found = vec![];
        match present_pages(region.addresses(), |range| found.push(range)) {
            Ok(()) => {
                let page = |start| start..start + PAGE_SIZE;
                let expected: Vec<_> = (0..1000)
                    .filter(|page| page % 3 == 1)
                    .map(|number| page(region.address(number)))
                    .collect();
                assert_eq!(found, expected);
            }
            // An older kernel.
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOTTY)),
        }
    }
}
