//! `depend`: the order of sibling tasks.

use gondwana_tasks::Dependence;
use libc::c_void;

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

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_tasks::conflict;

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
        let all = list(&[1, 1, 0]);
        assert!(conflict(&all, &reads) && conflict(&reads, &all) && !conflict(&all, &[]));
    }
}
