//! `gw_alloc` and its relatives: memory by resource set and policy, and where it really is.

use crate::arguments::{Handle, count, flags, room};
use crate::backend::Extras;
use crate::error::{Error, call, keep_remarks};
use crate::installed::backend;
use crate::record::{self, Record};
use gondwana_page::PAGE_SIZE;
use gondwana_rset::{Placement, PlacementError};
use libc::{c_int, c_long, c_uint, c_void};
use std::ptr::null_mut;

/// Flags of `gw_alloc`.
const STRICT: c_uint = 1 << 1;
const PREFAULT: c_uint = 1 << 2;
const LOCK: c_uint = 1 << 3;
const SMALL_PAGES: c_uint = 1 << 4;
const COLOURED: c_uint = 1 << 5;

/// The system was to choose the node of a page.
const ANY: c_int = -2;

impl From<PlacementError> for Error {
    fn from(error: PlacementError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// Memory by set and policy.
///
/// # Safety
/// `set` is null or a set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_alloc(
    bytes: usize,
    set: *const Handle,
    policy: c_int,
    stride: usize,
    given: c_uint,
) -> *mut c_void {
    call(null_mut(), || {
        // SAFETY: the caller's promise.
        let rset = unsafe { Handle::rset(set, "the set")? };
        let given = flags(given, STRICT | PREFAULT | LOCK | SMALL_PAGES | COLOURED)?;
        let stride = stride as u64;
        if bytes == 0 {
            return Err(Error::invalid("0 bytes were asked for"));
        }
        let placement = Placement::new(record::policy(policy, stride)?, &rset, backend().machine()?)?;
        let pages = bytes.div_ceil(PAGE_SIZE);
        let extras = Extras {
            prefault: given & PREFAULT != 0,
            lock: given & LOCK != 0,
            small_pages: given & SMALL_PAGES != 0,
            coloured: given & COLOURED != 0,
        };
        let block = backend().allocate(pages, &placement, extras)?;
        if given & STRICT != 0 && !block.remarks.is_empty() {
            // SAFETY: nobody else has the block.
            unsafe { backend().free(block.address, pages)? };
            return Err(Error::new(libc::ENOTSUP, block.remarks.join("; ")));
        }
        // SAFETY: as above.
        unsafe { Record::write(&block, pages, rset, policy, stride) };
        keep_remarks(&block.remarks);
        Ok(block.address as *mut c_void)
    })
}

/// Returns memory from `gw_alloc`.
///
/// # Safety
/// Nobody uses the memory any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_free(memory: *mut c_void) -> c_int {
    call(-1, || {
        if memory.is_null() {
            return Ok(0);
        }
        let record = Record::of(memory as usize)?;
        // SAFETY: the record says what it is, and the caller that nobody uses it.
        unsafe {
            record.erase();
            backend().free(record.address(), record.pages())?;
        }
        Ok(0)
    })
}

/// The nodes of the pages of any memory.
///
/// # Safety
/// There is room for `most` numbers behind `nodes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_where(
    start: *const c_void,
    bytes: usize,
    nodes: *mut c_int,
    most: usize,
) -> c_long {
    call(-1, || {
        // SAFETY: the caller's promise.
        let to = unsafe { room(nodes, most, "the array")? };
        let (first, pages) = pages_of(start as usize, bytes)?;
        let known = to.len().min(pages);
        backend().nodes_of_pages(first, &mut to[..known])?;
        Ok(count(pages))
    })
}

/// The first page of a range, and how many there are.
fn pages_of(start: usize, bytes: usize) -> Result<(usize, usize), Error> {
    let last = bytes
        .checked_sub(1)
        .and_then(|more| start.checked_add(more))
        .ok_or_else(|| Error::invalid(format!("{bytes} bytes from {start:#x} on are no range of memory")))?;
    let first = start - start % PAGE_SIZE;
    Ok((first, (last - first) / PAGE_SIZE + 1))
}

/// The nodes that were asked for, of the pages of a block.
///
/// # Safety
/// There is room for `most` numbers behind `nodes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_asked(memory: *const c_void, nodes: *mut c_int, most: usize) -> c_long {
    call(-1, || {
        // SAFETY: the caller's promise.
        let to = unsafe { room(nodes, most, "the array")? };
        let record = Record::of(memory as usize)?;
        let placement = record.placement()?;
        for (page, node) in (0..record.pages() as u64).zip(to) {
            *node = record.asked(&placement, page).map_or(ANY, |node| node.0.into());
        }
        Ok(count(record.pages()))
    })
}

/// How many pages of a block are on other nodes than asked for.
#[unsafe(no_mangle)]
pub extern "C" fn gw_misplaced(memory: *const c_void) -> c_long {
    call(-1, || {
        let record = Record::of(memory as usize)?;
        let misplaced = misplaced(&record)?;
        let remark = format!("{misplaced} of {} pages are on other nodes than asked for", record.pages());
        keep_remarks(if misplaced > 0 { std::slice::from_ref(&remark) } else { &[] });
        Ok(misplaced)
    })
}

fn misplaced(record: &Record) -> Result<c_long, Error> {
    let placement = record.placement()?;
    let mut found = [0; 512];
    let mut strays = 0;
    for first in (0..record.pages()).step_by(found.len()) {
        let some = found.len().min(record.pages() - first);
        backend().nodes_of_pages(record.address() + first * PAGE_SIZE, &mut found[..some])?;
        let present = (first as u64..).zip(&found[..some]).filter(|(_, node)| **node >= 0);
        strays += present
            .filter(|(page, node)| match record.asked(&placement, *page) {
                Some(asked) => **node != c_int::from(asked.0),
                None => !placement.nodes().iter().any(|possible| **node == c_int::from(possible.0)),
            })
            .count();
    }
    Ok(count(strays))
}
