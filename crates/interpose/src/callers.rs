//! The calls that an allocation comes from, where it does not come from the program itself: a container of the C++
//! library, say, or a library that allocates on behalf of its caller.

use crate::unwind::walk;
use std::ops::Range;

/// Calls beyond this depth are not looked at.
const DEEPEST: usize = 32;

/// The innermost call of the code `program`, behind the call that returns to `caller`; `None` if that is of this code
/// itself.
#[must_use]
pub fn beyond(caller: usize, program: &Range<usize>) -> Option<usize> {
    if program.contains(&caller) {
        return None;
    }
    let mut found = None;
    walk(DEEPEST, |frame| {
        found = program.contains(&frame.returns_to).then_some(frame.returns_to);
        found.is_none()
    });
    found
}

/// The call around the one that returns to `caller`: what called the function that this is in.
#[must_use]
pub fn around(caller: usize) -> Option<usize> {
    let (mut inside, mut found) = (false, None);
    walk(DEEPEST, |frame| {
        if inside {
            found = Some(frame.returns_to);
        }
        inside = frame.returns_to == caller;
        found.is_none()
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_from_the_inside_out() {
        let mut seen = vec![];
        walk(DEEPEST, |frame| {
            seen.push(frame.returns_to);
            true
        });
        assert!(seen.len() > 2);
        let outer = seen[2];
        assert_eq!(beyond(0, &(outer..outer + 1)), Some(outer));
        assert_eq!(beyond(outer, &(outer..outer + 1)), None);
        assert_eq!((around(seen[1]), around(0)), (Some(outer), None));
        assert_eq!(beyond(0, &(1..2)), None);
    }
}
