//! `depend`: the order of sibling tasks.

use gondwana_tasks::Dependence;
use libc::c_void;

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
    if out + exclusive + input < count {
        crate::report::fatal("OpenMP: a depend clause with depobj or inoutset cannot run on several nodes");
    }
    let changing = out + exclusive;
    // SAFETY: as above.
    let dependence = |index| unsafe {
        Dependence { address: *list.add(header + index) as usize, changes: index < changing }
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
    fn readers_run_side_by_side() {
        let (reads, changes) = (list(&[1, 0, 100]), list(&[1, 1, 100]));
        assert!(!conflict(&reads, &reads));
        assert!(conflict(&reads, &changes) && conflict(&changes, &reads) && conflict(&changes, &changes));
        assert!(!conflict(&changes, &list(&[1, 1, 200])));
    }
}
