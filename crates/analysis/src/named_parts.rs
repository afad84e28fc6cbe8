//! Names of the parts of areas that transactions touched.

use crate::NamedPart;
use crate::naming::Naming;
use crate::row_sums::{Amount, RowKey};
use std::cmp::Reverse;
use std::collections::HashMap;

/// The most parts that are named: the hottest.
const PARTS: usize = 20_000;

/// The parts with names more precise than their areas', in ascending order of addresses. `owners` and `areas` have
/// the owner and the area of each row; units above a page have no names.
pub(crate) fn named_parts(
    rows: &[(RowKey, Amount)],
    owners: &[usize],
    areas: &[u32],
    page_bytes: u64,
    naming: &Naming<'_>,
) -> Vec<NamedPart> {
    let mut heat: HashMap<(u64, u64, usize), (u64, u32)> = HashMap::new();
    for (((like, amount), &owner), &area) in rows.iter().zip(owners).zip(areas) {
        let range = like.range();
        if (1..=page_bytes).contains(&(range.end - range.start)) {
            let sum = &mut heat.entry((range.start, range.end, owner)).or_insert((0, area)).0;
            *sum = sum.saturating_add(amount.count);
        }
    }
    let mut hottest: Vec<_> = heat.into_iter().collect();
    hottest.sort_unstable_by_key(|&(key, (count, _))| (Reverse(count), key));
    hottest.truncate(PARTS);
    hottest.sort_unstable_by_key(|&(key, _)| key);
    let part = |((start, end, owner), (_, area))| {
        let range = start..end;
        let name = naming.range(owner, &range);
        let says_more = name
            .strip_prefix(naming.area(owner))
            .is_none_or(|rest| !rest.is_empty() && !rest.starts_with("+0x"));
        says_more.then_some(NamedPart { range, area, name })
    };
    hottest.into_iter().filter_map(part).collect()
}
