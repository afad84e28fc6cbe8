//! Visits that filters of this node are about: other nodes copy pages from its memory, and the protocol finds out when it next
//! works on the page. Whoever wants to know what was counted must not have to wait for that.

use crate::Node;
use gondwana_monitor::{BankConfiguration, Directions, Filter, Kind};

impl Node {
    /// Counts the visits that have not been counted yet, for those of the filters that are wanted.
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

    /// Counts the visits to pages of a filter that have not been counted yet, if it is about visits. Before it is set, this is
    /// what keeps it from counting what was before.
    pub(super) fn find_one_sided_reads(&'static self, filter: &Filter) {
        // Visitors leave no word of what they come for: as far as the home knows, they read.
        if filter.directions.meets(Directions::In) && filter.kinds.contains(Kind::Read) {
            for counted in filter.ranges() {
                for pages in self.geometry.pages_between(counted.start as usize, counted.end as usize) {
                    self.core().ports.report_one_sided_reads(pages);
                }
            }
        }
    }
}
