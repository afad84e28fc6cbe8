//! Variables that nodes change by atomic operations.

use crate::areas::{Map, reads_and_writes};
use crate::naming::{Codes, Naming};
use crate::row_sums::{Amount, RowKey};
use crate::{AtomicVariable, CodePlace};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most places in the program that are listed for a variable.
const PLACES: usize = 64;
/// log2 of the bytes of the longest unit whose address is the one that was touched.
const WORD: u8 = 2;

/// What is known of a variable.
#[derive(Default)]
struct Found {
    name: String,
    nodes: Vec<u64>,
    threads: BTreeSet<u32>,
    places: HashMap<(String, String), (u64, u64)>,
}

/// The variables at which atomic operations of the program began that needed a page of another node, hottest first. All misses there
/// count, also those of other loads and stores: threads that wait for a variable read it.
///
/// `owners` has the main owner of each row.
pub(crate) fn atomics(
    rows: &[(RowKey, Amount)],
    owners: &[usize],
    nodes: usize,
    map: &Map,
    naming: &Naming<'_>,
    codes: &mut Codes<'_>,
) -> Vec<AtomicVariable> {
    let misses = |(like, amount): &(RowKey, Amount)| reads_and_writes(like.kind, amount.count);
    let missed = |row: &&(RowKey, Amount)| row.0.code > 0 && misses(row) != (0, 0);
    let exact = |row: &&(RowKey, Amount)| row.0.unit <= WORD;
    let mut touched: HashMap<u64, BTreeSet<u64>> = HashMap::new();
    for (like, _) in rows.iter().filter(missed).filter(exact).filter(|(like, _)| codes.is_atomic(like.code)) {
        touched.entry(like.code).or_default().insert(like.address);
    }
    let mut found: BTreeMap<u64, Found> = BTreeMap::new();
    let with_owners = || rows.iter().zip(owners).filter(|(row, _)| missed(row));
    for ((like, _), &owner) in with_owners().filter(|((like, _), _)| codes.is_atomic(like.code)) {
        let (at, is_exact) = variable(like, owner, &touched, map);
        found.entry(at).or_insert_with(|| {
            let name = if is_exact { naming.at(map.at(at), at) } else { naming.area(owner).to_owned() };
            Found { name, nodes: vec![0; nodes], ..Found::default() }
        });
    }
    for (row, &owner) in with_owners() {
        let like = &row.0;
        if !exact(&row) && !codes.is_atomic(like.code) {
            continue;
        }
        let Some(variable) = found.get_mut(&variable(like, owner, &touched, map).0) else { continue };
        let (reads, writes) = misses(row);
        let node = &mut variable.nodes[usize::from(like.node)];
        *node = node.saturating_add(reads).saturating_add(writes);
        variable.threads.extend(like.thread.checked_sub(1));
        let place = variable.places.entry(codes.place(like.code)).or_default();
        *place = (place.0.saturating_add(reads), place.1.saturating_add(writes));
    }
    let mut variables: Vec<AtomicVariable> = found
        .into_iter()
        .map(|(address, found)| AtomicVariable {
            name: found.name,
            address,
            nodes: found.nodes,
            threads: found.threads.into_iter().collect(),
            places: CodePlace::hottest(found.places, PLACES),
        })
        .collect();
    variables.sort_by_key(|variable| (Reverse(variable.misses()), variable.address));
    variables
}

/// The address of the variable, and whether it is known. Of a larger unit it is if the same instruction has touched only one variable
/// there; otherwise the address is the first one of the owner. `touched` has the addresses by instruction.
fn variable(like: &RowKey, owner: usize, touched: &HashMap<u64, BTreeSet<u64>>, map: &Map) -> (u64, bool) {
    if like.unit <= WORD {
        return (like.address, true);
    }
    let unit = like.range();
    let mut inside = touched.get(&like.code).into_iter().flat_map(|addresses| addresses.range(unit.clone()));
    if let (Some(&only), None) = (inside.next(), inside.next()) {
        return (only, true);
    }
    let own = map.pieces(&unit).find(|(of, _)| *of == owner);
    (own.map_or(like.address, |(_, piece)| piece.start), false)
}
