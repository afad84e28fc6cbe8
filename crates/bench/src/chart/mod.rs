//! Charts of bars in groups, as SVG: one file that needs no other, readable on light and on dark ground.

mod drawing;
mod panel;
mod scale;
mod spread;

pub(crate) use panel::{Panel, Series};
pub(crate) use scale::digits;
pub(crate) use spread::Spread;

use panel::escaped;

const WIDTH: f64 = 720.0;
const MARGIN: f64 = 24.0;
/// Title and subtitle of the whole.
const HEAD: f64 = 64.0;

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

/// The charts below each other. Without any, the subtitle has to say why.
pub(crate) fn svg(title: &str, subtitle: &str, panels: &[Panel]) -> String {
    let height = HEAD + MARGIN + drawing::HEIGHT * panels.len() as f64;
    let (title, subtitle) = (escaped(title), escaped(subtitle));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"34\">{title}</text>\n\
         <text class=\"faint\" x=\"{MARGIN}\" y=\"54\">{subtitle}</text>\n"
    );
    for (index, panel) in panels.iter().enumerate() {
        let top = HEAD + MARGIN + drawing::HEIGHT * index as f64;
        svg += &format!(
            "<g transform=\"translate({MARGIN} {top})\">\n{}</g>\n",
            drawing::drawn(panel, WIDTH - 2.0 * MARGIN)
        );
    }
    svg + "</svg>\n"
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
}
