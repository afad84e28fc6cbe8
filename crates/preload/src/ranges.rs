//! Ranges of addresses or of pages.

use gondwana_page::PAGE_SIZE;
use std::ops::Range;

/// The pages that some bytes are in.
pub(crate) fn in_pages(bytes: &Range<usize>) -> Range<usize> {
    bytes.start & !(PAGE_SIZE - 1)..bytes.end.next_multiple_of(PAGE_SIZE)
}

/// Ranges in ascending order, with those that touch each other as one.
pub(crate) fn joined<T: Copy + PartialEq>(ranges: impl IntoIterator<Item = Range<T>>) -> Vec<Range<T>> {
    let mut all: Vec<Range<T>> = vec![];
    for range in ranges {
        match all.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => all.push(range),
        }
    }
    all
}

/// What of a range is between others that are in it, in ascending order.
pub(crate) fn between<T: Copy + PartialOrd>(
    all: Range<T>,
    others: &[Range<T>],
) -> impl Iterator<Item = Range<T>> + Clone {
    let starts = std::iter::once(all.start).chain(others.iter().map(|range| range.end));
    let ends = others.iter().map(|range| range.start).chain(std::iter::once(all.end));
    starts.zip(ends).map(|(start, end)| start..end).filter(|range| !range.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_joined_and_what_is_between_make_all() {
        let ranges = [1..3, 3..5, 8..9, 9..20];
        assert_eq!(joined(ranges.clone()), [1..5, 8..20]);
        assert_eq!(between(0..20, &ranges).collect::<Vec<_>>(), [0..1, 5..8]);
        assert_eq!(between(0..7, &[]).collect::<Vec<_>>(), std::slice::from_ref(&(0..7)));
    }

    #[test]
    fn pages_are_whole() {
        assert_eq!(in_pages(&(PAGE_SIZE + 1..PAGE_SIZE + 2)), PAGE_SIZE..2 * PAGE_SIZE);
        assert_eq!(in_pages(&(PAGE_SIZE..3 * PAGE_SIZE)), PAGE_SIZE..3 * PAGE_SIZE);
    }
}
