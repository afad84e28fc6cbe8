//! Data areas and nodes as lines with commas, for spreadsheets.

use gondwana_analysis::{Analysis, Area, AreaNode};

/// The columns. New ones are added at the end only.
const HEADER: &str = "area,pattern,node,reads,writes,cold,excess,ahead,upgrades,diffs,notices,invalidations,recalls,\
                      bytes,written_bytes,area_bytes";

/// A line for each area and node.
pub fn lines(analysis: &Analysis) -> String {
    let lines =
        analysis.areas.iter().flat_map(|area| area.nodes.iter().enumerate().map(move |at| line(area, at)));
    std::iter::once(format!("{HEADER}\n")).chain(lines).collect()
}

fn line(area: &Area, (number, node): (usize, &AreaNode)) -> String {
    let t = &node.totals;
    let numbers = [
        number as u64,
        t.reads,
        t.writes,
        t.cold,
        t.excess,
        t.ahead,
        t.upgrades,
        t.diffs,
        t.notices,
        t.invalidations,
        t.recalls,
        t.bytes,
        node.written,
        area.bytes,
    ];
    let numbers = numbers.map(|number| number.to_string()).join(",");
    format!("{},{},{numbers}\n", quoted(&area.name), area.pattern.name())
}

/// A text, quoted by RFC 4180.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_commas_are_quoted() {
        assert_eq!(quoted("make_grid, grid.c:41"), "\"make_grid, grid.c:41\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(quoted("counters"), "counters");
    }
}
