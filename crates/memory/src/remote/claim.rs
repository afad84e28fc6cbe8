//! Claims of pages of other nodes.

use super::RemoteMemory;
use super::access_word::{Claim, Means};
use gondwana_page::RemoteAccess;

/// One claim moves the home of at most this many pages that the home's threads may be writing. Those after the first
/// are predictions; a wrong one moves back.
const MOST_TAKEN: u32 = 8;

/// Claims of at most this many pages leave the home's threads their write access. Taking it is one system call for
/// all pages, which interrupts those threads; comparing a page with its copy later costs the home half a microsecond.
const MOST_LOGGED: u32 = 16;

#[cfg(debug_assertions)]
static WHILE_HELD: std::sync::OnceLock<fn()> = std::sync::OnceLock::new();

/// For tests: sets a function that is called each time this process has locked pages of another node.
#[cfg(debug_assertions)]
pub fn while_held(call: fn()) {
    WHILE_HELD.get_or_init(|| call);
}

/// Claims up to `most` pages from `first` that their home exposes for this access, for node `me`, and takes the write access
/// of that node's threads where needed. Returns how many pages may be read. Those claimed as [`RemoteAccess::Home`] stay locked
/// until [`complete_claim`].
pub fn claim(home: &dyn RemoteMemory, me: u16, first: u32, most: u32, access: RemoteAccess) -> u32 {
    let layout = home.layout();
    if me >= layout.nodes() {
        return 0;
    }
    let mut end = first + most.min(home.stoppable(first, first + most));
    let mut most_writable = if access == RemoteAccess::Home { MOST_TAKEN } else { most };
    let log = layout.read_log(home, me);
    let means = Means {
        log: most <= MOST_LOGGED && u64::from(most) <= log.room(),
        stop: home.capabilities().stops_writers,
    };
    // The first of the pages that are locked by this node, and whether the home's threads can write any of them.
    let mut locked = None;
    let mut page = first;
    while page < end {
        let claim = layout.access_word(home, page).claim(me, access, means);
        if claim == Claim::BesideWriters {
            log.write(page.into());
            home.fence();
        }
        locked = match (claim, locked) {
            (Claim::Refused, _) => break,
            (Claim::Granted | Claim::BesideWriters, Some(run)) => {
                if !take(home, run, page, access) {
                    return run.0 - first;
                }
                None
            }
            (Claim::Granted | Claim::BesideWriters, None) => None,
            (Claim::Locked { writable }, None) => Some((page, writable)),
            (Claim::Locked { writable }, Some((from, any))) => Some((from, any || writable)),
        };
        page += 1;
        most_writable -= u32::from(claim == Claim::Locked { writable: true });
        if most_writable == 0 {
            end = page;
        }
    }
    match locked {
        Some(run) if !take(home, run, page, access) => run.0 - first,
        _ => page - first,
    }
}

/// This node, the new home of pages that it has claimed as [`RemoteAccess::Home`], has copied them: the threads of the former
/// home may use its copies.
pub fn complete_claim(home: &dyn RemoteMemory, first: u32, count: u32) {
    for page in first..first + count {
        home.layout().access_word(home, page).take(RemoteAccess::Home);
    }
}

/// Takes write access to the pages until `end` that this node has locked. False if that is impossible: then they are
/// left.
fn take(home: &dyn RemoteMemory, (from, writable): (u32, bool), end: u32, access: RemoteAccess) -> bool {
    #[cfg(debug_assertions)]
    if let Some(call) = WHILE_HELD.get() {
        call();
    }
    let taken = !writable || home.stop_writers(from..end);
    if taken && access == RemoteAccess::Home {
        return true;
    }
    for page in from..end {
        let word = home.layout().access_word(home, page);
        if taken { word.take(access) } else { word.leave() }
    }
    taken
}
