//! `depend`: the order of sibling tasks.

use super::sync;
use super::task_record::{Dependence, Follower, Task};
use libc::c_void;
use std::ptr::null_mut;

/// The kind of a dependence object (`omp_depend_t`) for tasks that only read. Those of the kind `inoutset`, which might run beside
/// each other, run one after the other.
const IN: usize = 1;

/// Reads the list that gcc makes.
///
/// # Safety
/// `list` is null or such a list.
pub(super) unsafe fn parse(list: *const *mut c_void) -> Vec<Dependence> {
    if list.is_null() {
        return vec![];
    }
    // SAFETY: the list begins with how many entries it has of each kind; addresses follow.
    let (header, count, [out, exclusive, input]) = unsafe {
        let at = |index: usize| *list.add(index) as usize;
        match at(0) {
            0 => (5, at(1), [at(2), at(3), at(4)]),
            count => (2, count, [at(1), 0, count - at(1)]),
        }
    };
    let (changing, direct) = (out + exclusive, out + exclusive + input);
    // SAFETY: as above; what is not said by its place in the list is an object of two words.
    let dependence = |index| unsafe {
        let entry = *list.add(header + index);
        if index < direct {
            Dependence { address: entry as usize, changes: index < changing }
        } else {
            let [address, kind] = entry.cast::<[usize; 2]>().read();
            Dependence { address, changes: kind != IN }
        }
    };
    (0..count).map(dependence).collect()
}

/// True if tasks with these dependences must run one after the other.
pub(super) fn conflict(one: &[Dependence], other: &[Dependence]) -> bool {
    one.iter().any(|a| other.iter().any(|b| a.address == b.address && (a.changes || b.changes)))
}

/// Makes a task wait for another one.
///
/// # Safety
/// Both live, and the team's lock is held.
pub(super) unsafe fn follow(task: *mut Task, before: *mut Task) {
    // SAFETY: the caller's promise.
    unsafe {
        (*before).followers = sync::create(Follower { next: (*before).followers, task });
        (*task).blockers += 1;
    }
}

/// Removes a finished task from the dependences of its followers, and calls `ready` for those without further ones.
///
/// # Safety
/// It lives, and the team's lock is held.
pub(super) unsafe fn finished(task: *mut Task, mut ready: impl FnMut(*mut Task)) {
    // SAFETY: the caller's promise; followers live, because they have not begun.
    unsafe {
        let mut follower = std::mem::replace(&mut (*task).followers, null_mut());
        while !follower.is_null() {
            let Follower { next, task } = *follower;
            (*task).blockers -= 1;
            if (*task).blockers == 0 {
                ready(task);
            }
            sync::discard(follower);
            follower = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[usize]) -> Vec<Dependence> {
        let words: Vec<*mut c_void> = words.iter().map(|&word| word as *mut c_void).collect();
        // SAFETY: the tests give well-formed lists.
        unsafe { parse(words.as_ptr()) }
    }

    #[test]
    fn both_forms_of_the_list_are_read() {
        assert!(list(&[2, 1, 100, 200]) == list(&[0, 2, 1, 0, 1, 100, 200]));
        // SAFETY: null is allowed.
        assert!(unsafe { parse(std::ptr::null()) }.is_empty());
    }

    #[test]
    fn dependence_objects_say_their_kind() {
        let objects = [[300usize, 1], [400, 3]];
        let at = |index: usize| (&raw const objects[index]) as usize;
        let all = list(&[0, 3, 0, 0, 1, 200, at(0), at(1)]);
        let expected = [(200, false), (300, false), (400, true)];
        assert!(all == expected.map(|(address, changes)| Dependence { address, changes }));
    }

    #[test]
    fn readers_run_side_by_side() {
        let (reads, changes) = (list(&[1, 0, 100]), list(&[1, 1, 100]));
        assert!(!conflict(&reads, &reads));
        assert!(conflict(&reads, &changes) && conflict(&changes, &reads) && conflict(&changes, &changes));
        assert!(!conflict(&changes, &list(&[1, 1, 200])));
    }
}
