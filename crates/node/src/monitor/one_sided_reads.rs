//! One-sided reads by other nodes. They copy pages from this node's memory, and the protocol learns of it when it
//! next withdraws the page. Reading a counter must not wait for that: so the monitor scans the reader bitmaps first.

use crate::Node;
use gondwana_monitor::{BankConfiguration, Directions, Filter, Kind};
use gondwana_page::to_usize;

impl Node {
    /// Counts the one-sided reads that have not been counted yet, for the filters that `wanted` accepts.
    pub(super) fn count_one_sided_reads(
        &'static self,
        configuration: &BankConfiguration,
        wanted: impl Fn(&Filter) -> bool,
    ) {
        configuration
            .filters()
            .filter(|(_, filter)| wanted(filter))
            .for_each(|(_, filter)| self.find_one_sided_reads(filter));
    }

    /// Counts the one-sided reads of a filter's pages that have not been counted yet, if the filter is about reads.
    /// Before a filter is set, this keeps earlier reads out of its counters.
    pub(super) fn find_one_sided_reads(&'static self, filter: &Filter) {
        // The reader bitmap does not have what a page is read for: the home counts all as reads.
        if filter.directions.meets(Directions::In) && filter.kinds.contains(Kind::Read) {
            for counted in filter.ranges() {
                let [start, end] = [counted.start, counted.end].map(to_usize);
                for pages in self.geometry.pages_between(start, end) {
                    self.core().env.report_one_sided_reads(pages);
                }
            }
        }
    }
}
