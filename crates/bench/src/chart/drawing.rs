//! The drawing of one chart.

use super::panel::{Panel, escaped};
use super::scale::{Scale, digits};
use super::spread::Spread;
use std::fmt::Write;

/// The height of a chart, with the space to the next one.
pub(super) const HEIGHT: f64 = 320.0;

/// Title, legend and the name of the axis are above the bars.
const ABOVE: f64 = 80.0;
/// The names of the groups are below them.
const BOTTOM: f64 = HEIGHT - 44.0;
/// The numbers of the axis are on their left.
const LEFT: f64 = 48.0;
const WIDEST_BAR: f64 = 56.0;
/// A bar that is narrower has no room for its number.
const NARROWEST_LABELLED: f64 = 22.0;

/// How many colours there are.
const COLOURS: usize = 8;

/// A chart in a box of this width and of [`HEIGHT`].
pub(super) fn drawn(panel: &Panel, width: f64) -> String {
    let values = panel.series.iter().flat_map(|series| series.values.iter().flatten());
    let scale = Scale::new(values.flat_map(|spread| [spread.min, spread.max]));
    let mut out = format!(
        "<text class=\"panel\" y=\"14\">{}</text>\n{}<text class=\"faint\" y=\"{}\">{}</text>\n{}",
        escaped(&panel.title),
        legend(panel),
        ABOVE - 18.0,
        escaped(&panel.axis),
        axis(&scale, width)
    );
    let group_width = (width - LEFT) / panel.groups.len() as f64;
    let bar_width = (group_width * 0.8 / panel.series.len() as f64).min(WIDEST_BAR);
    for (index, group) in panel.groups.iter().enumerate() {
        let middle = LEFT + group_width * (index as f64 + 0.5);
        let (name, below) = (escaped(group), BOTTOM + 20.0);
        let _ = writeln!(out, "<text class=\"middle\" x=\"{middle:.1}\" y=\"{below}\">{name}</text>");
        let mut x = middle - bar_width * panel.series.len() as f64 / 2.0;
        for (number, series) in panel.series.iter().enumerate() {
            if let Some(spread) = &series.values[index] {
                let what = escaped(&format!("{group}, {}: {spread}", series.name));
                let bar = bar(x, bar_width, number, spread, &scale);
                let _ = writeln!(out, "<g><title>{what}</title>\n{bar}</g>");
            }
            x += bar_width;
        }
    }
    out
}

/// The height of a value.
fn y(scale: &Scale, value: f64) -> f64 {
    BOTTOM - (BOTTOM - ABOVE) * scale.position(value)
}

/// Lines with numbers, that of 1 different from the others.
fn axis(scale: &Scale, width: f64) -> String {
    let line = |tick: f64| {
        let (class, at, number) = (if tick == 1.0 { "one" } else { "grid" }, y(scale, tick), digits(tick));
        let (left, below) = (LEFT - 8.0, at + 4.0);
        format!(
            "<line class=\"{class}\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{width}\" y2=\"{at:.1}\"/>\n\
             <text class=\"faint end\" x=\"{left}\" y=\"{below:.1}\">{number}</text>\n"
        )
    };
    scale.ticks().into_iter().map(line).collect()
}

/// The names of the series, each with its colour.
fn legend(panel: &Panel) -> String {
    let mut x = 0.0;
    let entry = |(number, name): (usize, &str)| {
        let colour = number % COLOURS;
        let entry = format!(
            "<rect class=\"s{colour}\" x=\"{x:.1}\" y=\"28\" width=\"10\" height=\"10\" rx=\"2\"/>\n\
             <text x=\"{:.1}\" y=\"38\">{}</text>\n",
            x + 16.0,
            escaped(name)
        );
        // Letters of this size are about so wide.
        x += 34.0 + 6.4 * name.chars().count() as f64;
        entry
    };
    panel.series.iter().map(|series| series.name.as_str()).enumerate().map(entry).collect()
}

/// The bar of a value, its number, and a line from the least to the greatest of what it stands for.
fn bar(x: f64, width: f64, number: usize, spread: &Spread, scale: &Scale) -> String {
    let y = |value| y(scale, value);
    let (base, end, highest, lowest) = (y(scale.base()), y(spread.median), y(spread.max), y(spread.min));
    let (top, height, middle) = (end.min(base), (base - end).abs(), x + width / 2.0);
    let (left, inner, colour) = (x + 1.0, width - 2.0, number % COLOURS);
    let mut out = format!(
        "<rect class=\"s{colour}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{inner:.1}\" height=\"{height:.1}\"/>\n"
    );
    if lowest - highest > 1.0 {
        let _ = writeln!(
            out,
            "<line class=\"whisker\" x1=\"{middle:.1}\" y1=\"{lowest:.1}\" x2=\"{middle:.1}\" y2=\"{highest:.1}\"/>"
        );
    }
    if width >= NARROWEST_LABELLED {
        let label = if end > base { lowest + 15.0 } else { highest - 5.0 };
        let value = digits(spread.median);
        let _ = writeln!(out, "<text class=\"middle\" x=\"{middle:.1}\" y=\"{label:.1}\">{value}</text>");
    }
    out
}
