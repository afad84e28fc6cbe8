//! The counters of filters.

use gondwana_console::columns::{Side, amount, columns};
use gondwana_console::failure::Failure;
use gondwana_console::output::{self, print};
use gondwana_launcher::run_registry::ask;
use gondwana_launcher::run_registry::requests::Request;
use gondwana_monitor::{Kind, Kinds};
use gondwana_recording::{Counted, FilterCounts, Recording, read};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Units that the table shows of each filter.
const HOTTEST: usize = 4;

/// One filter of one node.
struct Shown {
    node: u16,
    filter: FilterCounts,
}

/// Shows the counters of a run.
pub(super) fn show(run: u32, json: bool) -> Result<ExitCode, Failure> {
    let (_, stream) = ask::request(run, &Request::Counters)?;
    let recording = read(stream).map_err(|error| Failure::cannot(format!("the counters: {error}")))?;
    let filters = filters(recording);
    if json {
        let filters: Vec<Value> = filters.iter().map(Shown::to_json).collect();
        return print(&output::json(&json!({ "filters": filters })));
    }
    if filters.is_empty() {
        return Err(Failure::cannot(format!(
            "the run of process {run} has no filters: gondwana monitor {run} --filter sets some"
        )));
    }
    print(&table(&filters))
}

/// The filters of all nodes; counters that came in parts are joined.
fn filters(recording: Recording) -> Vec<Shown> {
    let mut shown: Vec<Shown> = vec![];
    for (node, bank) in recording.banks {
        for mut filter in bank.filters {
            let same = |known: &&mut Shown| {
                let (a, b) = (&known.filter, &filter);
                known.node == node && (a.start, a.end, a.unit, a.kinds) == (b.start, b.end, b.unit, b.kinds)
            };
            // The parts of a filter are consecutive, with ascending units; anything else is another filter.
            let follows = |known: &&mut Shown| {
                let (last, first) = (known.filter.counters.last(), filter.counters.first());
                last.zip(first).is_some_and(|(last, first)| last.unit < first.unit)
            };
            match shown.last_mut().filter(same).filter(follows) {
                Some(known) => known.filter.counters.append(&mut filter.counters),
                None => shown.push(Shown { node, filter }),
            }
        }
    }
    shown.sort_by_key(|shown| (shown.filter.start, shown.filter.kinds, shown.node));
    shown
}

fn table(filters: &[Shown]) -> String {
    let heading =
        ["node", "range", "unit", "kinds", "counted", "units", "hottest"].map(str::to_owned).to_vec();
    let sides = [Side::Right, Side::Left, Side::Right, Side::Left, Side::Right, Side::Right, Side::Left];
    columns(&sides, &[heading].into_iter().chain(filters.iter().map(Shown::cells)).collect::<Vec<_>>())
}

impl Shown {
    fn address(&self, counted: &Counted) -> u64 {
        self.filter.start + (u64::from(counted.unit) << self.filter.unit)
    }

    fn kinds(&self) -> Vec<&'static str> {
        Kinds::from_bits(self.filter.kinds).iter().map(Kind::name).collect()
    }

    fn cells(&self) -> Vec<String> {
        let filter = &self.filter;
        let mut hottest: Vec<&Counted> = filter.counters.iter().collect();
        hottest.sort_by_key(|counted| (std::cmp::Reverse(counted.count), counted.unit));
        let of_one = |counted: &&Counted| format!("{:#x}: {}", self.address(counted), counted.count);
        let all = Kinds::from_bits(filter.kinds) == Kinds::ALL;
        vec![
            self.node.to_string(),
            format!("{:#x}-{:#x}", filter.start, filter.end),
            amount(1 << filter.unit),
            if all { "all".to_owned() } else { self.kinds().join("+") },
            filter.counters.iter().map(|counted| counted.count).sum::<u64>().to_string(),
            filter.counters.len().to_string(),
            hottest.iter().take(HOTTEST).map(of_one).collect::<Vec<_>>().join(", "),
        ]
    }

    fn to_json(&self) -> Value {
        let counter = |counted: &Counted| json!({ "address": self.address(counted), "count": counted.count });
        json!({
            "node": self.node,
            "start": self.filter.start,
            "end": self.filter.end,
            "unit": 1_u64 << self.filter.unit,
            "kinds": self.kinds(),
            "counters": self.filter.counters.iter().map(counter).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_recording::BankRecord;

    fn bank(kinds: Kinds, counters: &[(u32, u64)]) -> BankRecord {
        let counters = counters.iter().map(|&(unit, count)| Counted { unit, count }).collect();
        let filter = FilterCounts { start: 0x1000, end: 0x9000, unit: 12, kinds: kinds.bits(), counters };
        BankRecord { time: 0, filters: vec![filter] }
    }

    #[test]
    fn counters_that_came_in_parts_are_one_filter() {
        let reads = Kinds::of(&[Kind::Read]);
        let banks = vec![
            (1, bank(Kinds::ALL, &[(0, 3)])),
            (1, bank(Kinds::ALL, &[(2, 9)])),
            (0, bank(Kinds::ALL, &[])),
            (0, bank(reads, &[(1, 1)])),
        ];
        let shown = filters(Recording { banks, ..Recording::default() });
        let expected = "\
node  range           unit  kinds  counted  units  hottest
   0  0x1000-0x9000  4 KiB  read         1      1  0x2000: 1
   0  0x1000-0x9000  4 KiB  all          0      0
   1  0x1000-0x9000  4 KiB  all         12      2  0x3000: 9, 0x1000: 3
";
        assert_eq!(table(&shown), expected);
        assert_eq!(shown[2].to_json()["counters"][1], json!({ "address": 0x3000, "count": 9 }));
        assert_eq!(shown[0].to_json()["kinds"], json!(["read"]));
    }
}
