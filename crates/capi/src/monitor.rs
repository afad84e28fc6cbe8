//! `gw_monitor_*`: what crosses between nodes, counted on each of them and recorded.

use crate::arguments::{count, room, text};
use crate::error::{Error, call};
use crate::installed::backend;
use crate::monitor_backend::{Callback, Listener};
use gondwana_monitor::{Directions, Filter, FilterError, FilterId, Kind, Kinds, SecondaryId, Threshold};
use gondwana_topology::NodeId;
use libc::{c_char, c_int, c_long, c_uint, c_void};
use std::path::Path;

/// The longest name of a data area, in bytes.
const LONGEST_NAME: usize = 200;

/// `struct gw_filter`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GwFilter {
    start: *const c_void,
    bytes: usize,
    unit: usize,
    kinds: c_uint,
    directions: c_uint,
    first: c_long,
    threshold: u64,
    repeated: c_int,
    descriptor: c_int,
    callback: Option<Callback>,
    argument: *mut c_void,
}

impl From<FilterError> for Error {
    fn from(error: FilterError) -> Self {
        let number = match error {
            FilterError::Overlapping { .. } => libc::EEXIST,
            FilterError::NotSet => libc::ENOENT,
            FilterError::TooManyFilters(_)
            | FilterError::TooManySecondaries(_)
            | FilterError::TooManyCounters { .. } => libc::ENOSPC,
            _ => libc::EINVAL,
        };
        Self::new(number, error.to_string())
    }
}

/// Kinds as C has them: a bit for each, none for all.
fn kinds(bits: c_uint) -> Result<Kinds, Error> {
    match u16::try_from(bits) {
        Ok(0) => Ok(Kinds::ALL),
        Ok(bits) if Kinds::from_bits(bits).bits() == bits => Ok(Kinds::from_bits(bits)),
        _ => Err(Error::invalid(format!("{bits:#x} has bits that stand for no kind of transaction"))),
    }
}

impl GwFilter {
    /// The filter, and who is told of its threshold.
    fn read(&self) -> Result<(Filter, Listener), Error> {
        if !self.unit.is_power_of_two() {
            return Err(FilterError::Unit.into());
        }
        let start = self.start as u64;
        let end = start.checked_add(self.bytes as u64);
        let threshold = match (self.threshold, self.repeated) {
            (0, _) => None,
            (at, 0) => Some(Threshold::Once(at)),
            (step, _) => Some(Threshold::Every(step)),
        };
        let first = match self.first {
            -1 => None,
            number => Some(u32::try_from(number).map_err(|_| {
                Error::invalid(format!(
                    "there is no counter {number}: the first is a number from 0 on, or -1"
                ))
            })?),
        };
        let filter = Filter {
            start,
            end: end.ok_or_else(|| Error::invalid("the range goes beyond the last address"))?,
            unit: u8::try_from(self.unit.trailing_zeros()).expect("a word has few bits"),
            kinds: kinds(self.kinds)?,
            directions: match self.directions {
                0 | 3 => Directions::Both,
                1 => Directions::Out,
                2 => Directions::In,
                other => return Err(Error::invalid(format!("{other:#x} is no direction"))),
            },
            first,
            threshold,
            partition: None,
        };
        let listener = Listener {
            callback: self.callback.map(|callback| (callback, self.argument)),
            descriptor: self.descriptor,
        };
        let heard = listener.callback.is_some() || listener.descriptor >= 0;
        match (filter.threshold.is_some(), heard) {
            (true, false) => Err(Error::invalid("there is a threshold, and nobody to be told of it")),
            (false, true) => Err(Error::invalid("somebody is to be told of a threshold, and there is none")),
            _ => Ok((filter, listener)),
        }
    }
}

/// A filter by the number that C has.
fn filter_id(number: c_int) -> Result<FilterId, Error> {
    u8::try_from(number).map(FilterId).map_err(|_| FilterError::NotSet.into())
}

fn secondary_id(number: c_int) -> Result<SecondaryId, Error> {
    u8::try_from(number).map(SecondaryId).map_err(|_| FilterError::NotSet.into())
}

/// Records the run in a file.
///
/// # Safety
/// `file` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_monitor_start(file: *const c_char) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promise.
        let file = unsafe { text(file, "the name of the file")? }.to_owned();
        if file.is_empty() {
            return Err(Error::invalid("the name of the file is empty"));
        }
        backend().monitor()?.start(Path::new(&file))?;
        Ok(0)
    })
}

/// Records no more.
#[unsafe(no_mangle)]
pub extern "C" fn gw_monitor_stop() -> c_int {
    call(-1, || backend().monitor()?.stop().map(|()| 0))
}

/// Sets a filter on all nodes; its number.
///
/// # Safety
/// `filter` is null or a filter, and its callback may be called by another thread as long as it is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_monitor_filter(filter: *const GwFilter) -> c_int {
    call(-1, || {
        if filter.is_null() {
            return Err(Error::invalid("the filter is NULL"));
        }
        // SAFETY: the caller's promise.
        let (filter, listener) = unsafe { filter.read() }.read()?;
        Ok(c_int::from(backend().monitor()?.set(filter, listener)?.0))
    })
}

/// Takes a filter away.
#[unsafe(no_mangle)]
pub extern "C" fn gw_monitor_remove(filter: c_int) -> c_int {
    call(-1, || backend().monitor()?.remove(filter_id(filter)?).map(|()| 0))
}

/// The node with this number.
fn node_id(number: c_int) -> Result<NodeId, Error> {
    let number = u16::try_from(number).map_err(|_| Error::invalid(format!("there is no node {number}")))?;
    Ok(NodeId(number))
}

/// The counters of a filter, all nodes taken together.
///
/// # Safety
/// There is room for `most` numbers behind `counters`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_monitor_read(filter: c_int, counters: *mut u64, most: usize) -> c_long {
    // SAFETY: the caller's promise.
    call(-1, || unsafe { read(filter, None, counters, most) })
}

/// The counters of a filter on one node.
///
/// # Safety
/// There is room for `most` numbers behind `counters`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_monitor_read_node(
    filter: c_int,
    node: c_int,
    counters: *mut u64,
    most: usize,
) -> c_long {
    // SAFETY: the caller's promise.
    call(-1, || unsafe { read(filter, Some(node_id(node)?), counters, most) })
}

/// # Safety
/// There is room for `most` numbers behind `counters`.
unsafe fn read(
    filter: c_int,
    node: Option<NodeId>,
    counters: *mut u64,
    most: usize,
) -> Result<c_long, Error> {
    // SAFETY: the caller's promise.
    let to = unsafe { room(counters, most, "the array")? };
    let counted = backend().monitor()?.counters(filter_id(filter)?, node)?;
    to.iter_mut().zip(&counted).for_each(|(to, count)| *to = *count);
    Ok(count(counted.len()))
}

/// Begins a secondary counter; its number.
///
/// # Safety
/// There are `count` numbers behind `filters`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_monitor_shadow(filters: *const c_int, count: usize, bits: c_uint) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promise; nothing is written.
        let filters = unsafe { room(filters.cast_mut(), count, "the array of filters")? };
        let filters = filters.iter().map(|&number| filter_id(number)).collect::<Result<Vec<_>, _>>()?;
        if filters.is_empty() {
            return Err(Error::invalid("no filter is named"));
        }
        Ok(c_int::from(backend().monitor()?.shadow(&filters, kinds(bits)?)?.0))
    })
}

/// What a secondary counter has counted, on all nodes together.
///
/// # Safety
/// `counted` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_monitor_secondary(secondary: c_int, counted: *mut u64) -> c_int {
    // SAFETY: the caller's promise.
    call(-1, || unsafe { read_secondary(secondary, None, counted) })
}

/// What a secondary counter has counted on one node.
///
/// # Safety
/// `counted` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_monitor_secondary_node(
    secondary: c_int,
    node: c_int,
    counted: *mut u64,
) -> c_int {
    // SAFETY: the caller's promise.
    call(-1, || unsafe { read_secondary(secondary, Some(node_id(node)?), counted) })
}

/// # Safety
/// `counted` is null or can be written to.
unsafe fn read_secondary(secondary: c_int, node: Option<NodeId>, counted: *mut u64) -> Result<c_int, Error> {
    // SAFETY: the caller's promise.
    let to = unsafe { room(counted, 1, "the place for the counter")? };
    to[0] = backend().monitor()?.secondary(secondary_id(secondary)?, node)?;
    Ok(0)
}

/// Ends a secondary counter.
#[unsafe(no_mangle)]
pub extern "C" fn gw_monitor_unshadow(secondary: c_int) -> c_int {
    call(-1, || backend().monitor()?.unshadow(secondary_id(secondary)?).map(|()| 0))
}

/// Gives data a name.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_monitor_name(start: *const c_void, bytes: usize, name: *const c_char) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "the name")? }.to_owned();
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(Error::invalid(format!("a name has 1 to {LONGEST_NAME} bytes, not {}", name.len())));
        }
        if bytes == 0 || (start as usize).checked_add(bytes).is_none() {
            return Err(Error::invalid("there is nothing at these addresses to be named"));
        }
        backend().monitor()?.name(start as usize, bytes, &name)?;
        Ok(0)
    })
}

// The numbers of kinds are those of the header.
const _: () = assert!(Kind::LockHandOff as u8 == 12 && Kind::ALL.len() == 13);

#[cfg(test)]
mod tests {
    use super::*;

    fn filter() -> GwFilter {
        GwFilter {
            start: 0x1000 as *const c_void,
            bytes: 0x2000,
            unit: 64,
            kinds: 0,
            directions: 0,
            first: -1,
            threshold: 0,
            repeated: 0,
            descriptor: -1,
            callback: None,
            argument: std::ptr::null_mut(),
        }
    }

    fn sentence(filter: GwFilter) -> String {
        filter.read().unwrap_err().sentence
    }

    #[test]
    fn what_is_left_out_means_everything() {
        let (read, listener) = filter().read().unwrap();
        assert_eq!((read.start, read.end, read.unit, read.kinds), (0x1000, 0x3000, 6, Kinds::ALL));
        assert_eq!((read.directions, read.first, read.threshold), (Directions::Both, None, None));
        assert_eq!(listener, Listener { callback: None, descriptor: -1 });
        let (read, _) = GwFilter { kinds: 1 << 8, directions: 2, first: 9, ..filter() }.read().unwrap();
        assert!(read.kinds.iter().eq([Kind::Diff]));
        assert_eq!((read.directions, read.first), (Directions::In, Some(9)));
        let (read, _) = GwFilter { threshold: 5, repeated: 1, descriptor: 3, ..filter() }.read().unwrap();
        assert_eq!(read.threshold, Some(Threshold::Every(5)));
    }

    #[test]
    fn nonsense_is_refused_in_a_sentence() {
        assert!(sentence(GwFilter { unit: 48, ..filter() }).contains("power of two"));
        assert!(sentence(GwFilter { kinds: 1 << 13, ..filter() }).contains("stand for no kind"));
        assert!(sentence(GwFilter { directions: 4, ..filter() }).contains("no direction"));
        assert!(sentence(GwFilter { first: -2, ..filter() }).contains("no counter -2"));
        assert!(sentence(GwFilter { bytes: usize::MAX, ..filter() }).contains("beyond the last address"));
        assert!(sentence(GwFilter { threshold: 3, ..filter() }).contains("nobody to be told"));
        assert!(sentence(GwFilter { descriptor: 3, ..filter() }).contains("there is none"));
    }

    #[test]
    fn one_computer_has_nothing_to_count() {
        // SAFETY: a string, and a filter.
        unsafe {
            assert_eq!(gw_monitor_start(c"x.gwr".as_ptr()), -1);
            assert_eq!(gw_monitor_filter(&filter()), -1);
        }
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOTSUP));
    }
}
