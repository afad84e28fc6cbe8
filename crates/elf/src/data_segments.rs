//! The writable data of the program: which addresses hold `.data` and `.bss` of the executable and of the
//! libraries that it uses.

use crate::loaded::{self, LoadedObject};
use gondwana_page::{PAGE_SIZE, to_usize};
use std::ops::ControlFlow;

/// A page-aligned range of writable program data, past what the loader has made read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSegment {
    /// First address.
    pub base: usize,
    /// Length in pages.
    pub pages: u32,
    /// How many of them, the first ones, hold bytes that come from the file. The others are zero until they are written.
    pub initialised: u32,
}

/// The data segments of the running program, in ascending order of address. `own` is an address inside the
/// library that must not count as the program's: the caller itself.
#[must_use]
pub fn data_segments(own: usize) -> Vec<DataSegment> {
    let mut found = vec![];
    let mut is_executable = true;
    loaded::visit(|object| {
        let of_program = std::mem::take(&mut is_executable) || crate::is_of_program(object.path());
        if of_program && !object.holds(own) {
            collect(object, &mut found);
        }
        ControlFlow::<()>::Continue(())
    });
    found.sort_by_key(|segment| segment.base);
    found
}

fn collect(object: &LoadedObject<'_>, found: &mut Vec<DataSegment>) {
    let read_only_end = object.read_only_pages().end;
    for header in object.loads().filter(|header| header.p_flags & libc::PF_W != 0) {
        let addresses = object.range(header);
        let end = addresses.end.next_multiple_of(PAGE_SIZE);
        let start = addresses.start;
        let base = (start / PAGE_SIZE * PAGE_SIZE).max(if read_only_end > start { read_only_end } else { 0 });
        if base < end {
            let zero = (start + to_usize(header.p_filesz)).next_multiple_of(PAGE_SIZE).clamp(base, end);
            let pages = |to: usize| u32::try_from((to - base) / PAGE_SIZE).expect("less than 16 TiB");
            found.push(DataSegment { base, pages: pages(end), initialised: pages(zero) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn variables_of_the_executable_are_data_unless_it_is_the_caller() {
        static VARIABLE: AtomicU32 = AtomicU32::new(1);
        let holds = |segments: &[DataSegment]| {
            let address = &raw const VARIABLE as usize;
            let mut ranges = segments
                .iter()
                .map(|segment| segment.base..segment.base + segment.pages as usize * PAGE_SIZE);
            ranges.any(|range| range.contains(&address))
        };
        assert!(holds(&data_segments(0)));
        assert!(!holds(&data_segments(holds_nothing as *const () as usize)));
    }

    fn holds_nothing() {}
}
