//! Tests of the page as a text. Tests in a browser are in `tests/page`.

use super::limits::MOST_PLACES;
use super::*;
use gondwana_analysis::{
    AdviceKind, Area, AreaNode, Cell, CodePlace, Entry, FalselySharedPage, Field, NodeTotal, Origin, Pattern,
    Totals, UsedBytes, plan,
};
use gondwana_plan::{Homes, Traffic, Variable};

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>'\"&lt;<!--\u{202e}\u{2028}\u{0}";

fn area(name: &str) -> Area {
    let totals = Totals { reads: 10, writes: 5, bytes: 4096, ..Totals::default() };
    Area {
        name: name.to_owned(),
        origin: Origin::Allocation {
            site: name.to_owned(),
            caller: name.to_owned(),
            library: name.to_owned(),
            stack: vec![name.to_owned()],
            threads: vec![0, 1],
        },
        ranges: std::iter::once(4096..8192).collect(),
        objects: 1,
        bytes: 4096,
        totals,
        nodes: vec![AreaNode { totals, written: 7, threads: vec![1], from: vec![0, 3] }],
        pattern: Pattern::FalselyShared,
        places: vec![CodePlace { text: name.to_owned(), function: name.to_owned(), reads: 10, writes: 5 }],
        fields: vec![Field { name: name.to_owned(), reads: 2, writes: 3 }],
        falsely_shared: vec![FalselySharedPage {
            page: 4096,
            fetches: 12,
            writers: vec![UsedBytes { node: 0, writes: true, bytes: 4100..4104, name: name.to_owned() }],
        }],
    }
}

/// An analysis with this text in all places.
fn everywhere(text: &str) -> Analysis {
    let mut analysis = Analysis { seconds: 1.5, areas: vec![area(text)], ..Analysis::default() };
    analysis.run.executable = text.to_owned();
    analysis.run.command = vec![text.to_owned()];
    analysis.run.page_bytes = 4096;
    for field in [&mut analysis.run.consistency, &mut analysis.run.fabric, &mut analysis.run.plan] {
        text.clone_into(field);
    }
    analysis.totals = analysis.areas[0].totals;
    analysis.nodes = vec![NodeTotal { host: text.to_owned(), ..NodeTotal::default() }];
    analysis.threads = vec![gondwana_analysis::ThreadInfo { number: 0, node: 0, routine: text.to_owned() }];
    analysis.flows =
        vec![vec![gondwana_analysis::Flow { pages: 1, bytes: 4096, ..Default::default() }; 2]; 2];
    analysis.locks = vec![LockHandOffs { name: text.to_owned(), address: 64, hand_offs: vec![3] }];
    analysis.atomics = vec![gondwana_analysis::AtomicVariable {
        name: text.to_owned(),
        nodes: vec![7],
        places: analysis.areas[0].places.clone(),
        ..Default::default()
    }];
    let thread = gondwana_analysis::ConstructThread { worked: 2.0, waited: 1.0, ..Default::default() };
    analysis.constructs = vec![gondwana_analysis::Construct {
        place: text.to_owned(),
        function: text.to_owned(),
        threads: vec![thread],
        ..Default::default()
    }];
    analysis.cells = vec![Cell { address: 4096, unit: 12, reads: 1, ..Cell::default() }];
    analysis.notes = vec![text.to_owned()];
    analysis
}

fn advice(text: &str) -> Advice {
    let saving = Traffic { requests: 3, bytes: 4096 };
    let variable = Variable {
        line: 0,
        name: text.to_owned(),
        library: Some(text.to_owned()),
        homes: Homes::default(),
        replicate: true,
        reason: text.to_owned(),
        saving: Some(saving),
    };
    Advice {
        area: text.to_owned(),
        kind: AdviceKind::Replicate,
        reason: text.to_owned(),
        saving,
        entries: vec![Entry::Variable(variable)],
        change: text.to_owned(),
    }
}

/// The elements of a page that hold a program or may load something, as they are written.
fn tags(page: &str) -> Vec<&str> {
    page.split('<').skip(1).filter_map(|tag| tag.split('>').next()).collect()
}

#[test]
fn hostile_names_add_no_element() {
    let harmless = render(&everywhere("name"), &[advice("name")], &Plan::default());
    let hostile = render(&everywhere(HOSTILE), &[advice(HOSTILE)], &Plan::default());
    let names = |page: &str| {
        let names = tags(page)
            .into_iter()
            .filter_map(|tag| tag.split([' ', '\n', '/']).find(|part| !part.is_empty()));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&hostile), names(&harmless));
    assert!(!hostile.contains("<img"));
    assert_eq!(hostile.matches("</script>").count(), 2);
    assert!(!hostile.contains('\0'));
}

#[test]
fn hostile_names_add_no_attribute() {
    let hostile = advice("' autofocus onfocus='alert(1)");
    let page = render(&everywhere("\" onclick=\"alert(1)"), &[hostile], &Plan::default());
    let attributes =
        tags(&page).into_iter().filter(|tag| tag.contains("onclick=") || tag.contains("onfocus="));
    assert_eq!(attributes.count(), 0);
}

#[test]
fn nothing_comes_from_elsewhere() {
    let page = render(&everywhere("name"), &[advice("advice")], &Plan::default());
    for source in
        ["http:", "https:", "//www", "src=", "@import", "url(", "<link", "<iframe", "eval(", "import("]
    {
        assert!(!page.contains(source), "{source}");
    }
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
    assert!(!page.contains("unsafe-"));
}

#[test]
fn the_policy_names_the_sums_of_what_is_there() {
    let page = render(&everywhere("name"), &[], &Plan::default());
    for (begin, end) in [("<style>", "</style>"), ("<script>", "</script>")] {
        let text = page.split_once(begin).unwrap().1.split_once(end).unwrap().0;
        let sum = STANDARD.encode(Sha256::digest(text));
        assert!(page.contains(&format!("'sha256-{sum}'")), "{begin}");
    }
}

#[test]
fn tables_are_there_without_the_script() {
    let page = render(&everywhere("grid"), &[advice("Do this")], &Plan::default());
    let text = page.split_once("<script").unwrap().0;
    for part in [
        "<bdi>grid</bdi>",
        "falsely-shared",
        "bytes 4-7 grid",
        "Bring Do this to",
        "3 of 15 requests (20 %) and 4 KiB",
        "Hand-offs",
        "<td class=\"text\">node 0: 7</td>",
        "<code><bdi>grid</bdi></code>: 15",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn a_recording_of_nothing_is_a_page_that_says_so() {
    let page = render(&Analysis::default(), &[], &Plan::default());
    for sentence in
        ["Nothing crossed between the nodes.", "There is no advice", "No lock passed between nodes."]
    {
        assert!(page.contains(sentence), "{sentence}");
    }
}

#[test]
fn the_size_is_bounded() {
    let mut analysis = everywhere("a name of usual length");
    let cell = |index: u64| Cell {
        address: (1 << 46) + index / 4 * 4096,
        unit: 12,
        area: (index % 1000) as u32,
        node: (index % 4) as u16,
        thread: (index % 64) as u32,
        reads: (index % 1000) as u32,
        writes: (index % 77) as u32,
        bytes: index % 1000 * 4096,
    };
    analysis.cells = (0..cells::LIMIT as u64).map(cell).collect();
    let full = render(&analysis, &[], &Plan::default()).len();
    assert!(full < 8 << 20, "{full} bytes for {} cells", cells::LIMIT);

    // Ten times as much of everything is not a larger page by much.
    analysis.cells = (0..10 * cells::LIMIT as u64).map(cell).collect();
    analysis.areas = vec![analysis.areas[0].clone(); 10 * MOST_AREAS];
    analysis.locks = vec![analysis.locks[0].clone(); 10 * MOST_LOCKS];
    analysis.atomics = vec![analysis.atomics[0].clone(); 10 * MOST_ATOMICS];
    analysis.atomics[0].places = vec![analysis.areas[0].places[0].clone(); 10 * MOST_PLACES];
    let page = render(&analysis, &[], &Plan::default());
    assert!(page.len() < 16 << 20, "{} bytes", page.len());
    assert!(page.contains("Of 10,000 data areas this page shows 1,000"));
    assert!(page.contains("Of 2,000 atomic variables this page shows 200"));
    assert!(page.contains("The picture shows units of at least"));
}

#[test]
fn numbers_that_nobody_counted_are_numbers() {
    let mut analysis = everywhere("name");
    let most = Totals { reads: u64::MAX, writes: u64::MAX, diffs: u64::MAX, ..Totals::default() };
    analysis.totals = most;
    analysis.areas[0].totals = most;
    analysis.areas[0].nodes[0].totals = most;
    let backwards = std::ops::Range { start: u64::MAX, end: 0 };
    analysis.areas[0].falsely_shared[0].writers[0].bytes = backwards.clone();
    analysis.areas[0].ranges = vec![backwards];
    analysis.cells[0].address = u64::MAX;
    analysis.cells[0].unit = 255;
    analysis.seconds = f64::NAN;
    analysis.timeline = vec![gondwana_analysis::TimelineSlot { begin: 0.0, end: 0.0, nodes: vec![most] }];
    analysis.locks[0].hand_offs = vec![u64::MAX; 2];
    analysis.atomics[0].nodes = vec![u64::MAX; 2];
    assert!(render(&analysis, &[], &Plan::default()).contains("100 %"));
}

/// A copied plan of the page must keep the entries of the run's plan.
#[test]
fn plans_keep_what_the_plan_of_the_run_says_about_other_memory() {
    let analysis = everywhere("grid");
    let of = |advice: &Advice| plan(&analysis, std::slice::from_ref(advice));
    let earlier = of(&advice("tree"));
    let page = render(&analysis, &[advice("grid")], &earlier).replace("&#34;", "\"");
    let both = of(&advice("grid")).keeping(&earlier).to_toml();
    assert!(both.contains("\"grid\"") && both.contains("\"tree\""), "{both}");
    // In the plan for all advice, and in that of the only piece of advice.
    assert_eq!(page.matches(&words::text(both.trim_end())).count(), 2);
}
