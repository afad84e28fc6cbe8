//! `poll` on descriptors that several nodes have open.

use super::event::Event;
use super::place::{Place, place};
use super::sets::left;
use super::stops;
use super::there::There;
use super::watch::Watch;
use crate::accesses;
use crate::numbers::{after, int};
use libc::{POLLIN, c_int, pollfd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The members of a set that one node has open, by their places in it.
struct Part {
    there: There,
    places: Vec<usize>,
}

/// The parts of a set that other nodes have open, and the places of the rest; `None` if all are here.
///
/// # Safety
/// The set has that many members.
pub(super) unsafe fn parts(set: *const pollfd, count: usize, name: &str) -> Option<Apart> {
    // The kernel says of a set that is nowhere that it is.
    // SAFETY: as promised.
    let number = |index: usize| unsafe { accesses::load(set.wrapping_add(index)) }.map_or(-1, |one| one.fd);
    if !(0..count).any(|index| stops::is_stop(number(index))) {
        return None;
    }
    let mut apart = Apart { parts: vec![], here: vec![] };
    for index in 0..count {
        match place(&[number(index)], name) {
            Place::There(there) => {
                match apart.parts.iter_mut().find(|part| part.there.owner == there.owner) {
                    Some(part) => part.places.push(index),
                    None => apart.parts.push(Part { there, places: vec![index] }),
                }
            }
            // The kernel returns `POLLNVAL` for those that are nowhere.
            Place::Here | Place::Nowhere => apart.here.push(index),
        }
    }
    (!apart.parts.is_empty()).then_some(apart)
}

/// A set of descriptors of several nodes.
pub(super) struct Apart {
    parts: Vec<Part>,
    here: Vec<usize>,
}

/// `poll` by this process, on private memory: how many are ready, or `None` after a failure.
fn poll_here(set: &mut [pollfd], timeout: c_int) -> Option<usize> {
    // SAFETY: the set is as long as told.
    let count = unsafe { gondwana_sys::syscall!(libc::SYS_poll, set.as_mut_ptr(), set.len(), timeout) };
    usize::try_from(count).ok()
}

impl Apart {
    /// Waits until a member of the set is ready, at most so long: how many are, or -1.
    pub(super) fn poll(&self, set: &mut [pollfd], longest: Option<Duration>) -> c_int {
        let until = longest.and_then(after);
        set.iter_mut().for_each(|one| one.revents = 0);
        if let ([part], true) = (&*self.parts, self.here.is_empty()) {
            let mut members = members(set, &part.places);
            let done = part.there.poll(&mut members, left(until));
            note(set, &part.places, &members);
            return done.map_or(-1, int);
        }
        loop {
            let (waited, error) = self.wait(set, left(until));
            let count = set.iter().filter(|one| one.revents != 0).count();
            if count > 0 || waited && until.is_some_and(|until| until <= Instant::now()) {
                return int(count);
            }
            if !waited {
                crate::errno::set(error);
                return -1;
            }
        }
    }

    /// One wait, which may end without anything being ready. False after a failure of this process's part, with the error number.
    fn wait(&self, set: &mut [pollfd], timeout: c_int) -> (bool, c_int) {
        let Ok(event) = Event::new() else { return (false, crate::errno::get()) };
        let event = Arc::new(event);
        let watches: Vec<Watch> = self
            .parts
            .iter()
            .map(|part| {
                let event = Arc::clone(&event);
                Watch::begin(part.there, members(set, &part.places), move || event.notify())
            })
            .collect();
        let mut here = members(set, &self.here);
        here.push(pollfd { fd: event.number(), events: POLLIN, revents: 0 });
        let waited = poll_here(&mut here, timeout).is_some();
        let error = crate::errno::get();
        note(set, &self.here, &here);
        for (part, watch) in self.parts.iter().zip(watches) {
            note(set, &part.places, &watch.end());
        }
        (waited, error)
    }
}

/// Copies of some members of a set.
fn members(set: &[pollfd], places: &[usize]) -> Vec<pollfd> {
    places.iter().map(|&place| set[place]).collect()
}

/// Notes what is ready among such copies.
fn note(set: &mut [pollfd], places: &[usize], members: &[pollfd]) {
    for (&place, member) in places.iter().zip(members) {
        set[place].revents = member.revents;
    }
}
