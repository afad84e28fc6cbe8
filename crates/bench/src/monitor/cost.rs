//! What the monitor does with a transaction, by itself: figures that hold also on a computer that has other things to do.

use gondwana_monitor::{AggregationTable, BankConfiguration, Direction, Filter, Kind, Transaction};
use gondwana_recording::{Interval, TransactionRow, encode};
use std::hint::black_box;
use std::time::Instant;

/// Different places that transactions are about: fewer than an aggregation table holds before it becomes coarser.
const PLACES: u64 = 16 << 10;

/// How often everything is measured; the least time counts, since whatever else the computer does only adds to it.
const PASSES: usize = 20;

/// How many filters are set when their cost is measured.
pub(super) const FILTERS: u64 = 32;

/// log2 of the bytes of the units.
const UNIT: u8 = 5;

/// Nanoseconds.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct Cost {
    /// To note a transaction like none before it.
    pub new: f64,
    /// To note one like another.
    pub again: f64,
    /// To write down the row of like transactions.
    pub row: f64,
    /// To count a transaction while [`FILTERS`] filters are set, each about a part of the memory; none are, unless
    /// somebody sets them.
    pub filters: f64,
}

impl Cost {
    /// Measures it.
    pub(super) fn measure() -> Self {
        let mut table = AggregationTable::default();
        let note = |table: &mut AggregationTable| {
            nanoseconds(|| {
                for number in 0..PLACES {
                    table.note(&black_box(transaction(number)), UNIT);
                }
                black_box(table.rows());
            })
        };
        let configuration = configuration();
        let infinite = f64::INFINITY;
        let mut least = Self { new: infinite, again: infinite, row: infinite, filters: infinite };
        for _ in 0..PASSES {
            table.clear();
            least.new = least.new.min(note(&mut table));
            least.again = least.again.min(note(&mut table));
            let row = nanoseconds(|| {
                let rows = table.rows().iter().map(|aggregate| TransactionRow {
                    address: aggregate.key.address,
                    unit: aggregate.key.unit,
                    kind: aggregate.key.kind,
                    direction: aggregate.key.direction,
                    peer: aggregate.key.peer,
                    thread: 1,
                    code: aggregate.key.code,
                    count: aggregate.count,
                    bytes: aggregate.bytes,
                });
                black_box(encode(0, &Interval { begin: 0, end: 1, rows: rows.collect() }));
            });
            least.row = least.row.min(row);
            least.filters = least.filters.min(nanoseconds(|| {
                for number in 0..PLACES {
                    configuration.bank().count(&black_box(transaction(number)));
                }
            }));
        }
        least
    }

    /// Nanoseconds that it took to note something so many times, of which so many rows came.
    pub(super) fn of(&self, times: u64, rows: u64) -> f64 {
        let again = times.saturating_sub(rows) as f64;
        again * self.again + rows as f64 * (self.new + self.row)
    }
}

/// The transactions are about so many units, as a power of two: 1 GiB.
const ADDRESS_BITS: u32 = 25;

/// One of the transactions: neighbours in time are far apart in memory, and come from a few places of the code.
fn transaction(number: u64) -> Transaction {
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - ADDRESS_BITS);
    Transaction {
        kind: Kind::Read,
        direction: Direction::Out,
        address: scattered << UNIT,
        bytes: 4096,
        peer: 1,
        thread: Some(0),
        code: 0x40_1000 + number % 7,
    }
}

/// Filters side by side that together are about all of the transactions.
fn configuration() -> BankConfiguration {
    let mut configuration = BankConfiguration::default();
    let part = (1 << (ADDRESS_BITS + u32::from(UNIT))) / FILTERS;
    for number in 0..FILTERS {
        configuration
            .set(Filter::new(number * part, (number + 1) * part, 12))
            .expect("there is room for small filters that do not overlap");
    }
    configuration
}

/// Of one of the places.
fn nanoseconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / PLACES as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_that_are_measured_are_all_different_and_fit() {
        let mut table = AggregationTable::default();
        (0..PLACES).for_each(|number| table.note(&transaction(number), UNIT));
        assert_eq!(table.rows().len() as u64, PLACES);
        assert!(table.rows().iter().all(|row| row.key.unit == UNIT && row.key.code != 0));
        let configuration = configuration();
        (0..PLACES).for_each(|number| configuration.bank().count(&transaction(number)));
        let counted = |id| configuration.counters(id).unwrap().sum::<u64>();
        let counts: Vec<u64> = configuration.filters().map(|(id, _)| counted(id)).collect();
        assert!(counts.len() as u64 == FILTERS && counts.iter().all(|&count| count > 0), "{counts:?}");
        assert_eq!(counts.iter().sum::<u64>(), PLACES);
    }

    #[test]
    fn like_transactions_cost_less_than_rows() {
        let cost = Cost { new: 100.0, again: 10.0, row: 20.0, filters: 30.0 };
        assert_eq!(cost.of(1_000, 1_000), 120_000.0);
        assert_eq!(cost.of(1_000, 1), 120.0 + 9_990.0);
        assert_eq!(cost.of(0, 0), 0.0);
    }
}
