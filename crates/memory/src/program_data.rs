//! What of the program is in memory before it is shared: where its data lies, and which pages of it have contents.

use crate::geometry::{LOW, PAGE_SIZE, Segment};
use crate::{MemoryError, resident};
use gondwana_elf::DataSegment;
use std::ops::Range;

/// True if nothing of the program lies at low addresses, or so far below that its heap could reach them at once: the same on all nodes.
pub(crate) fn low_is_free(data: &[DataSegment]) -> bool {
    const HEAP: usize = 64 << 20;
    let ends_before =
        |segment: &DataSegment| segment.base + segment.pages as usize * PAGE_SIZE + HEAP <= LOW.start;
    data.iter().all(|segment| segment.base >= LOW.end || ends_before(segment))
}

/// Runs of fewer untouched pages are copied like their neighbours. That takes at most a millisecond, and these pages
/// have a home that sees the first write of another node; the monitor would miss that of a page without a home.
const FEW_UNTOUCHED: u32 = 1024;

/// The pages of the data segments with contents: those that the executable's file initialises, and those with frames
/// because the loader has written them. Short runs of other pages are included.
pub(crate) fn contents_of(
    data: &[DataSegment],
    overlays: &[Segment],
) -> Result<Vec<Range<u32>>, MemoryError> {
    let mut contents = vec![];
    for (data, segment) in data.iter().zip(overlays) {
        let end = segment.first + segment.pages;
        let zero = segment.first + data.initialised;
        let address = segment.base + data.initialised as usize * PAGE_SIZE;
        let touched = resident::pages(address, end - zero)?;
        let mut pages = segment.first..zero;
        for run in touched.iter().map(|run| zero + run.start..zero + run.end).chain(std::iter::once(end..end))
        {
            if run.start - pages.end < FEW_UNTOUCHED {
                pages.end = run.end;
            } else {
                contents.push(std::mem::replace(&mut pages, run));
            }
        }
        contents.push(pages);
    }
    contents.retain(|pages| !pages.is_empty());
    Ok(contents)
}
