//! Charts of bars in groups, as SVG: one file that needs no other, readable on light and on dark ground.

mod scale;

pub use scale::digits;

use scale::Scale;
use serde::Serialize;
use std::fmt::Write;

/// One chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// What its values are: ratios, where 1 is what they are compared with.
    pub axis: String,
    /// What is along the horizontal axis.
    pub groups: Vec<String>,
    /// The bars of each group.
    pub series: Vec<Series>,
}

/// Bars of one colour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Their name.
    pub name: String,
    /// One value for each group that has one.
    pub values: Vec<Option<Spread>>,
}

/// Several values in short.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The least one.
    pub min: f64,
    /// The one in the middle, or between the two in the middle.
    pub median: f64,
    /// The greatest one.
    pub max: f64,
}

impl Spread {
    /// Nothing if there are none.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { min, median, max })
    }
}

/// The median, and from where to where the values go if they differ in what is shown.
impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [min, median, max] = [self.min, self.median, self.max].map(digits);
        if min == max { f.pad(&median) } else { f.pad(&format!("{median} ({min} to {max})")) }
    }
}

const WIDTH: f64 = 720.0;
const MARGIN: f64 = 24.0;
/// Title and subtitle of the whole.
const HEAD: f64 = 64.0;
/// A panel, with the space to the next one.
const PANEL: f64 = 300.0;
/// Within a panel: title and legend above the bars, and the names of the groups below.
const ABOVE: f64 = 60.0;
const BELOW: f64 = 44.0;
/// The numbers of the vertical axis.
const LEFT: f64 = 48.0;
const WIDEST_BAR: f64 = 56.0;
/// A bar that is narrower has no room for its number.
const NARROWEST_LABELLED: f64 = 22.0;

const STYLE: &str = "
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.ground { fill: #ffffff; }
.title { font-size: 18px; font-weight: 600; }
.panel { font-size: 14px; font-weight: 600; }
.faint { fill: #59636e; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.grid { stroke: #d1d9e0; }
.one { stroke: #59636e; stroke-dasharray: 4 3; }
.whisker { stroke: #1f2328; stroke-width: 1.5; }
.s0 { fill: #2a78c8; } .s1 { fill: #e08526; } .s2 { fill: #3a9a64; } .s3 { fill: #9661c2; }
.s4 { fill: #c8475e; } .s5 { fill: #2d9d9d; } .s6 { fill: #8a7a2f; } .s7 { fill: #7d8590; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.ground { fill: #0d1117; }
.faint { fill: #9198a1; }
.grid { stroke: #30363d; }
.one { stroke: #9198a1; }
.whisker { stroke: #e6edf3; }
}
";

/// How many colours there are.
const COLOURS: usize = 8;

/// The charts below each other. Without any, the subtitle has to say why.
pub fn svg(title: &str, subtitle: &str, panels: &[Panel]) -> String {
    let height = HEAD + MARGIN + PANEL * panels.len() as f64;
    let (title, subtitle) = (escaped(title), escaped(subtitle));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"34\">{title}</text>\n\
         <text class=\"faint\" x=\"{MARGIN}\" y=\"54\">{subtitle}</text>\n"
    );
    for (index, panel) in panels.iter().enumerate() {
        let top = HEAD + MARGIN + PANEL * index as f64;
        svg += &format!("<g transform=\"translate({MARGIN} {top})\">\n{}</g>\n", panel.drawn());
    }
    svg + "</svg>\n"
}

impl Panel {
    fn drawn(&self) -> String {
        let (right, bottom) = (WIDTH - 2.0 * MARGIN, PANEL - BELOW);
        let values = self.series.iter().flat_map(|series| series.values.iter().flatten());
        let scale = Scale::new(values.flat_map(|spread| [spread.min, spread.max]));
        let y = |value: f64| bottom - (bottom - ABOVE) * scale.position(value);
        let mut out = format!(
            "<text class=\"panel\" y=\"14\">{}</text>\n<text class=\"faint\" y=\"{}\">{}</text>\n{}",
            escaped(&self.title),
            ABOVE - 22.0,
            escaped(&self.axis),
            self.legend(right)
        );
        for tick in scale.ticks() {
            let (class, at) = (if tick == 1.0 { "one" } else { "grid" }, y(tick));
            out += &format!(
                "<line class=\"{class}\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\"/>\n\
                 <text class=\"faint end\" x=\"{}\" y=\"{:.1}\">{}</text>\n",
                LEFT - 8.0,
                at + 4.0,
                digits(tick)
            );
        }
        let group_width = (right - LEFT) / self.groups.len() as f64;
        let bar = (group_width * 0.8 / self.series.len() as f64).min(WIDEST_BAR);
        for (index, group) in self.groups.iter().enumerate() {
            let middle = LEFT + group_width * (index as f64 + 0.5);
            out += &format!(
                "<text class=\"middle\" x=\"{middle:.1}\" y=\"{}\">{}</text>\n",
                bottom + 20.0,
                escaped(group)
            );
            let start = middle - bar * self.series.len() as f64 / 2.0;
            for (number, series) in self.series.iter().enumerate() {
                if let Some(spread) = &series.values[index] {
                    let what = format!("{group}, {}: {spread}", series.name);
                    out += &drawn_bar(
                        start + bar * number as f64,
                        bar,
                        number,
                        y(scale.base()),
                        &y,
                        spread,
                        &what,
                    );
                }
            }
        }
        out
    }

    /// The names of the series, from right to left; of one series, too.
    fn legend(&self, right: f64) -> String {
        let mut out = String::new();
        let mut end = right;
        for (number, series) in self.series.iter().enumerate().rev() {
            // Letters of this size are about so wide.
            let start = end - 6.4 * series.name.chars().count() as f64;
            let top = ABOVE - 32.0;
            let _ = write!(
                out,
                "<rect class=\"s{}\" x=\"{:.1}\" y=\"{top}\" width=\"10\" height=\"10\" rx=\"2\"/>\n\
                 <text x=\"{start:.1}\" y=\"{}\">{}</text>\n",
                number % COLOURS,
                start - 16.0,
                top + 10.0,
                escaped(&series.name)
            );
            end = start - 32.0;
        }
        out
    }
}

/// One bar from `base` to its value, both in pixels after `y`. `what` is shown to those who point at it.
fn drawn_bar(
    x: f64,
    width: f64,
    number: usize,
    base: f64,
    y: &impl Fn(f64) -> f64,
    spread: &Spread,
    what: &str,
) -> String {
    let (end, highest, lowest) = (y(spread.median), y(spread.max), y(spread.min));
    let (top, height, middle) = (end.min(base), (base - end).abs(), x + width / 2.0);
    let mut out = format!(
        "<g><title>{}</title>\n<rect class=\"s{}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>\n",
        escaped(what),
        number % COLOURS,
        x + 1.0,
        width - 2.0
    );
    if lowest - highest > 1.0 {
        let _ = writeln!(
            out,
            "<line class=\"whisker\" x1=\"{middle:.1}\" y1=\"{lowest:.1}\" x2=\"{middle:.1}\" y2=\"{highest:.1}\"/>"
        );
    }
    if width >= NARROWEST_LABELLED {
        // At the end of the bar, beyond its whisker.
        let label = if end > base { lowest + 15.0 } else { highest - 5.0 };
        let value = digits(spread.median);
        let _ = writeln!(out, "<text class=\"middle\" x=\"{middle:.1}\" y=\"{label:.1}\">{value}</text>");
    }
    out + "</g>\n"
}

/// A text as XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use roxmltree::Document;

    fn same(value: f64) -> Option<Spread> {
        Spread::of(vec![value])
    }

    fn panel(values: [[Option<Spread>; 2]; 2]) -> Panel {
        let series = ["a & b", "<c>"].into_iter().zip(values);
        let series = series.map(|(name, values)| Series { name: name.to_owned(), values: values.to_vec() });
        Panel {
            title: "title".to_owned(),
            axis: "times".to_owned(),
            groups: vec!["one".to_owned(), "two".to_owned()],
            series: series.collect(),
        }
    }

    /// The bars of a drawing: colour, top and height.
    fn bars(svg: &str) -> Vec<(String, f64, f64)> {
        let document = Document::parse(svg).unwrap();
        let bars = document
            .descendants()
            .filter(|node| node.has_tag_name("g") && node.attribute("transform").is_none());
        let bar = |node: roxmltree::Node| {
            let bar = node.children().find(|child| child.has_tag_name("rect")).unwrap();
            let number = |name| bar.attribute(name).unwrap().parse().unwrap();
            (bar.attribute("class").unwrap().to_owned(), number("y"), number("height"))
        };
        bars.map(bar).collect()
    }

    #[test]
    fn a_drawing_is_xml_with_a_bar_for_each_value() {
        let svg = svg("T", "processor <x> & co", &[panel([[same(1.0), same(2.0)], [None, same(4.0)]])]);
        let bars = bars(&svg);
        let colours: Vec<&str> = bars.iter().map(|(colour, ..)| colour.as_str()).collect();
        assert_eq!(colours, ["s0", "s0", "s1"]);
        let [one, two, four] = [bars[0].2, bars[1].2, bars[2].2];
        assert!((two - 2.0 * one).abs() < 0.2 && (four - 4.0 * one).abs() < 0.2, "{bars:?}");
        let bottoms: Vec<f64> = bars.iter().map(|(_, top, height)| top + height).collect();
        assert!(bottoms.iter().all(|bottom| (bottom - bottoms[0]).abs() < 0.2), "{bars:?}");
    }

    #[test]
    fn texts_are_there_and_inside_the_drawing() {
        let svg =
            svg("T", "processor <x> & co", &vec![panel([[same(1.0), same(200.0)], [None, same(0.01)]]); 3]);
        let document = Document::parse(&svg).unwrap();
        let root = document.root_element();
        let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        for text in ["T", "processor <x> & co", "times", "one", "two", "a & b", "<c>", "200", "0.01"] {
            assert!(texts.contains(&text), "{text}: {texts:?}");
        }
        let number = |node: roxmltree::Node, name| {
            node.attribute(name).map_or(0.0, |text| text.parse::<f64>().unwrap())
        };
        for node in document.descendants().filter(|node| node.is_element()) {
            assert!(
                (0.0..=number(root, "width")).contains(&(number(node, "x") + number(node, "width"))),
                "{node:?}"
            );
            assert!(number(node, "x") >= 0.0 && number(node, "y") >= 0.0, "{node:?}");
        }
    }

    #[test]
    fn bars_on_powers_of_10_begin_at_1() {
        let bars = bars(&svg("T", "", &[panel([[same(100.0), same(0.01)], [None, None]])]));
        let [(_, top, height), (_, other_top, other_height)] = &bars[..] else { panic!("{bars:?}") };
        assert!((top + height - other_top).abs() < 0.2 && (height - other_height).abs() < 0.2, "{bars:?}");
    }

    #[test]
    fn nothing_to_draw_is_a_drawing_all_the_same() {
        assert_eq!(bars(&svg("T", "nothing", &[])), []);
    }

    #[test]
    fn a_spread_has_the_value_in_the_middle() {
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0]).unwrap().to_string(), "2 (1 to 4)");
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(same(1.5).unwrap().to_string(), "1.5");
        assert_eq!(Spread::of(vec![]), None);
    }
}
