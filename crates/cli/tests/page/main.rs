//! The page of a report in a real browser: contents, interaction, and no external requests.

mod browser;
#[path = "../common/mod.rs"]
mod common;
mod recorded;
mod sample;

use browser::{Ground, Page, SHIFT, folder};
use gondwana_analysis::{Advice, AdviceKind, Analysis, Entry};
use gondwana_plan::{Homes, Plan, Traffic, Variable};
use gondwana_report::page;
use gondwana_rset::MemoryPolicy;
use sample::{BODIES, COUNTERS, DATA, GRID, HEAP, HOSTILE};

/// The colours of the first nodes, as the style has them for both grounds.
const LIGHT: [[u8; 3]; 4] = [[0x00, 0x72, 0xb2], [0xe6, 0x9f, 0x00], [0x00, 0x9e, 0x73], [0xcc, 0x79, 0xa7]];
const DARK: [[u8; 3]; 4] = [[0x3c, 0x9b, 0xdc], [0xf0, 0xad, 0x1f], [0x22, 0xb5, 0x8b], [0xdd, 0x92, 0xbb]];

fn advice() -> Vec<Advice> {
    let saving = Traffic { requests: 15_200, bytes: 40 << 20 };
    let reason = "one node writes each part of it, and all homes are on node 0, which ran main";
    let entry = Variable {
        line: 0,
        name: "grid".to_owned(),
        library: None,
        homes: Homes::Policy(MemoryPolicy::Block),
        replicate: false,
        reason: reason.to_owned(),
        saving: Some(saving),
    };
    let block = Advice {
        area: "grid = malloc".to_owned(),
        kind: AdviceKind::Block,
        reason: reason.to_owned(),
        saving,
        entries: vec![Entry::Variable(entry)],
        change: String::new(),
    };
    let pad = Advice {
        area: "counters".to_owned(),
        kind: AdviceKind::Pad,
        reason: "nodes 0 to 3 write different bytes of one page".to_owned(),
        saving: Traffic { requests: 14_000, bytes: 0 },
        entries: vec![],
        change: "pad counters so that each element has a page of its own".to_owned(),
    };
    vec![block, pad]
}

/// The page in a browser, once it has drawn its picture; `None` if there is no browser.
fn open(name: &str, analysis: &Analysis, ground: Ground) -> Option<Page> {
    let file = folder().join(format!("{name}.html"));
    std::fs::write(&file, page::render(analysis, &advice(), &Plan::default())).unwrap();
    let page = Page::open(&file, ground)?;
    page.until("document.getElementById('picture')?.dataset.drawn > 0");
    Some(page)
}

/// How many bytes the picture shows.
fn span(page: &Page) -> f64 {
    page.state("span").parse().unwrap()
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

/// Waits until the picture shows an area, or `all`.
fn until_area(page: &Page, area: &str) {
    page.until(&format!("document.getElementById('picture').dataset.area === '{area}'"));
}

#[test]
fn all_parts_are_there_and_nothing_is_asked_for() {
    for (name, ground, colours) in [("light", Ground::Light, LIGHT), ("dark", Ground::Dark, DARK)] {
        let Some(page) = open(name, &sample::analysis(), ground) else { return };
        page.screenshot(&format!("{name}-top"));
        assert!(page.text("#hottest").starts_with("Hottest: grid = malloc causes"));
        for (part, text) in [
            ("#advice", "To do: Pad counters so that each element has a page of its own."),
            ("#areas", "producer-consumer"),
            ("#traffic", "douglas-fir"),
            ("#time", "node 3"),
            ("#locks", "sums.lock"),
            ("#notes", "Node 2 did not end in order"),
        ] {
            assert!(page.text(part).contains(text), "{part}: {}", page.text(part));
        }
        let canvas = page.place("#canvas");
        let shot = page.screenshot(name);
        for colour in colours {
            assert!(shot.count(canvas, colour) > 200, "{colour:?}: {}", shot.count(canvas, colour));
        }
        for part in ["#area-table .bar", "#area-table tr:nth-child(2) .bar"] {
            let bar = page.place(part);
            let shot = page.screenshot(&format!("{name}-table"));
            assert!(colours.iter().all(|&colour| shot.count(bar, colour) > 0), "{part}");
        }
        page.place("#time");
        page.screenshot(&format!("{name}-end"));
        page.was_quiet();
    }
}

#[test]
fn a_row_leads_to_the_picture_of_its_area() {
    let Some(page) = open("areas", &sample::analysis(), Ground::Light) else { return };
    assert_eq!(page.state("area"), "all");
    page.click(&format!("#area-table tr[data-area='{COUNTERS}']"));
    until_area(&page, &COUNTERS.to_string());
    assert_eq!((page.state("from"), page.state("to"), span(&page)), (hex(DATA), hex(DATA + 256), 256.0));
    assert_eq!(page.state("bin"), "32");
    let details = page.text("#chosen");
    for text in ["counters", "falsely-shared", "[].updates", "counters[3].updates", "96-103", "relax.c:90"] {
        assert!(details.contains(text), "{text}: {details}");
    }
    page.screenshot("counters");

    // The blocks of one allocation are beside each other.
    page.click(&format!("#area-table a[data-area='{BODIES}']"));
    until_area(&page, &BODIES.to_string());
    assert!(page.text("#chosen").contains("make_body+0x18") && !page.text("#chosen").contains("relax.c:90"));
    // Also where nothing is falsely shared, parts have their names.
    page.point(page.place("#canvas").at(0.5, 0.5));
    assert!(page.text("#hint").contains("extra[0]."), "{}", page.text("#hint"));
    page.screenshot("bodies");
    page.click("[data-do=all]");
    until_area(&page, "all");
    assert_eq!(page.text("#chosen"), "");
    page.click("#hottest a");
    until_area(&page, &GRID.to_string());
    assert_eq!((page.state("from"), span(&page)), (hex(HEAP), 4_194_304.0));
    page.was_quiet();
}

#[test]
fn the_picture_zooms_to_a_cache_line_and_back() {
    let Some(page) = open("zoom", &sample::analysis(), Ground::Light) else { return };
    let whole = span(&page);
    let canvas = page.place("#canvas");
    let spot = canvas.at(0.4, 0.5);
    let mut before = whole;
    while before > 32.0 {
        page.wheel(spot, -300.0);
        page.until(&format!("document.getElementById('picture').dataset.span < {before}"));
        before = span(&page);
    }
    assert_eq!(before, 32.0);
    let from = u64::from_str_radix(&page.state("from")[2..], 16).unwrap();
    assert_eq!(from % 32, 0);
    page.point(spot);
    assert!(page.text("#hint").contains("grid = malloc+0x"), "{}", page.text("#hint"));
    page.screenshot("cache-line");
    while before < whole {
        page.wheel(spot, 300.0);
        page.until(&format!("document.getElementById('picture').dataset.span > {before}"));
        before = span(&page);
    }
    assert_eq!(before, whole);

    // Dragging over a part shows this part.
    page.drag(canvas.at(0.3, 0.5), canvas.at(0.5, 0.5), 0);
    page.until(&format!("document.getElementById('picture').dataset.span < {}", whole / 4.0));
    let (part, from) = (span(&page), page.state("from"));
    assert!(part > whole / 6.0, "{part} of {whole}");
    page.drag(canvas.at(0.5, 0.5), canvas.at(0.3, 0.5), SHIFT);
    page.until(&format!("document.getElementById('picture').dataset.from !== '{from}'"));
    assert_eq!(span(&page), part);
    page.was_quiet();
}

/// What the page must say about an address in the bodies of the sample: elements of a block, and blocks behind each other.
fn body(address: u64) -> String {
    let offset = address - HEAP - (1 << 30);
    let name = if offset < 16_000 { format!("bodies[{}]", offset / 160) } else { "extra[0]".to_owned() };
    let field = match offset % 160 {
        0..8 => ".mass",
        8..56 => ".speed",
        64.. => ".position",
        _ => "",
    };
    name + field
}

#[test]
fn every_address_of_a_known_thing_has_a_name() {
    let Some(page) = open("names", &sample::analysis(), Ground::Light) else { return };
    for place in [0.07, 0.4, 0.9] {
        page.click(&format!("#area-table tr[data-area='{BODIES}']"));
        until_area(&page, &BODIES.to_string());
        let spot = page.place("#canvas").at(place, 0.5);
        let mut before = span(&page);
        while before > 32.0 {
            page.wheel(spot, -300.0);
            page.until(&format!("document.getElementById('picture').dataset.span < {before}"));
            before = span(&page);
        }
        page.point(spot);
        let hint = page.text("#hint");
        // What the bin under the pointer is about: `0x1000 and 32 B on`.
        let bin = hint.lines().find_map(|line| line.strip_suffix(" B on")?.split_once(" and ")).unwrap();
        let (from, bytes) = (u64::from_str_radix(&bin.0[2..], 16).unwrap(), bin.1.parse::<u64>().unwrap());
        let (first, last) = (body(from), body(from + bytes - 1));
        let expected = if first == last { first } else { format!("{first}..{last}") };
        assert!(hint.lines().any(|line| line == expected), "{expected}: {hint}");
        page.click("[data-do=all]");
        until_area(&page, "all");
    }
    page.was_quiet();
}

#[test]
fn keys_do_what_the_pointer_does() {
    let Some(page) = open("keys", &sample::analysis(), Ground::Light) else { return };
    let whole = span(&page);
    page.value("document.getElementById('canvas').focus()");
    page.write("+");
    page.until(&format!("document.getElementById('picture').dataset.span == {}", whole / 2.0));
    let from = page.state("from");
    page.press("Home");
    page.until(&format!("document.getElementById('picture').dataset.from !== '{from}'"));
    assert_eq!(page.state("from"), hex(DATA));
    page.press("ArrowRight");
    page.until("/node \\d/.test(document.getElementById('reading').textContent)");
    page.write("0");
    page.until(&format!("document.getElementById('picture').dataset.span == {whole}"));
    page.press("ArrowRight");
    page.press("Enter");
    until_area(&page, &GRID.to_string());
    // A link in the table, as the keyboard reaches it.
    page.value(&format!("document.querySelector('#area-table a[data-area=\"{COUNTERS}\"]').focus()"));
    page.press("Enter");
    until_area(&page, &COUNTERS.to_string());
    page.was_quiet();
}

#[test]
fn switches_say_what_is_shown_and_of_whom() {
    let Some(page) = open("switches", &sample::analysis(), Ground::Light) else { return };
    assert_eq!(page.value("document.querySelectorAll('#legend button').length"), 4);
    page.click("input[value=thread]");
    page.until("document.getElementById('picture').dataset.by === 'thread'");
    assert_eq!(page.value("document.querySelectorAll('#legend button').length"), 8);
    assert!(page.text("#legend").contains("thread 5 on node 1 (relax)"));
    page.click("input[name=log]");
    page.until("document.getElementById('picture').dataset.height === 'log'");
    page.screenshot("log");
    page.click("input[value=lanes]");
    page.until("document.getElementById('picture').dataset.shape === 'lanes'");
    page.screenshot("lanes");
    page.click("input[value=bytes]");
    page.until("document.getElementById('picture').dataset.what === 'bytes'");
    page.click("input[value=node]");
    page.click("input[value=stack]");
    page.until("document.getElementById('picture').dataset.shape === 'stack'");

    // Who is switched off is not drawn.
    page.click("#legend button:nth-child(2)");
    page.until(
        "document.querySelector('#legend button:nth-child(2)').getAttribute('aria-pressed') === 'false'",
    );
    let canvas = page.place("#canvas");
    let shot = page.screenshot("without-node-1");
    assert_eq!(shot.count(canvas, LIGHT[1]), 0);
    assert!(shot.count(canvas, LIGHT[0]) > 200);
    page.was_quiet();
}

#[test]
fn the_table_sorts_and_filters() {
    let Some(page) = open("table", &sample::analysis(), Ground::Light) else { return };
    let first =
        "[...document.querySelectorAll('#area-table tbody tr')].find((row) => !row.hidden).dataset.area";
    assert_eq!(page.value(first), GRID.to_string());
    page.click("#area-table th:nth-child(7) button");
    assert_eq!(page.value(first), COUNTERS.to_string());
    page.click("#area-table th:nth-child(7) button");
    assert_eq!(page.value(first), HOSTILE.to_string());
    page.click("#filter");
    page.write("migra");
    assert_eq!(page.value(first), BODIES.to_string());
    assert_eq!(page.text("#found"), "1 of 4");
    page.was_quiet();
}

#[test]
fn a_hostile_name_is_a_name() {
    let Some(page) = open("hostile", &sample::analysis(), Ground::Light) else { return };
    assert_eq!(page.value("document.title"), "relax: what crosses between its nodes");
    assert_eq!(page.value("document.images.length + document.scripts.length"), 2);
    page.click(&format!("#area-table tr[data-area='{HOSTILE}']"));
    until_area(&page, &HOSTILE.to_string());
    assert!(page.text("#chosen h3").starts_with("</script><script>"));
    let label = page.value("document.getElementById('canvas').getAttribute('aria-label')");
    assert!(label.as_str().unwrap().contains("</script><script>"));
    page.was_quiet();
}

#[test]
fn a_full_page_is_drawn_without_delay() {
    let Some(page) = open("full", &sample::full(), Ground::Light) else { return };
    let canvas = page.place("#canvas");
    let shot = page.screenshot("full");
    assert!(shot.count(canvas, LIGHT[0]) > 200);
    // From a change to the screen: the browser draws between two frames.
    let seconds = page.value(
        "(async () => {
            const frame = () => new Promise((done) => requestAnimationFrame(done));
            const button = document.querySelector('[data-do=in]');
            await frame();
            const start = performance.now();
            for (let step = 0; step < 5; step += 1) {
                button.click();
                await frame();
                await frame();
            }
            return (performance.now() - start) / 5000;
        })()",
    );
    println!("{seconds} seconds for a step");
    assert!(seconds.as_f64().unwrap() < 1.0, "{seconds} seconds for a step");
    page.was_quiet();
}
