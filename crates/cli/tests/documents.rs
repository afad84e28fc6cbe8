//! The documents of the repository: every relative link leads to a file, every anchor to a heading, and every test that the
//! threat model names to a function.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose files are built or fetched, not written.
const NOT_OURS: [&str; 3] = ["target", ".git", "build"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// All Markdown files below a folder.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    files(folder, ".md", found);
}

/// All files below a folder whose names end in a way.
fn files(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            if !NOT_OURS.contains(&name.as_str()) {
                files(&path, end, found);
            }
        } else if name.ends_with(end) {
            found.push(path);
        }
    }
}

/// The links of a document, and the anchors of its headings.
fn links_and_anchors(text: &str) -> (Vec<String>, HashSet<String>) {
    let (mut links, mut anchors) = (vec![], HashSet::new());
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push(dest_url.into_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let count = times.entry(anchor.clone()).or_default();
                anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
                *count += 1;
            }
            _ => {}
        }
    }
    (links, anchors)
}

/// The anchor that forges give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Why a link of the document at `from` leads nowhere; None if it leads somewhere or out of the repository.
fn broken(from: &Path, text: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, wanted) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = if file.is_empty() { from.to_owned() } else { from.parent()?.join(file) };
    if !target.exists() {
        return Some(format!("{}: {link}: there is no {}", from.display(), target.display()));
    }
    let wanted = wanted?;
    let text =
        if file.is_empty() { text.to_owned() } else { fs::read_to_string(&target).unwrap_or_default() };
    let found = links_and_anchors(&text).1.contains(wanted);
    (!found).then(|| format!("{}: {link}: {} has no such heading", from.display(), target.display()))
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut files = vec![];
    documents(root(), &mut files);
    let (mut seen, mut wrong) = (0, vec![]);
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let links = links_and_anchors(&text).0;
        seen += links.len();
        wrong.extend(links.iter().filter_map(|link| broken(file, &text, link)));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(files.len() > 20 && seen > 80, "{} documents, {seen} links: too few to be all", files.len());
}

#[test]
fn the_readme_leads_to_every_document() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let links = links_and_anchors(&readme).0;
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            !name.ends_with(".md") || links.contains(&format!("docs/{name}")),
            "README.md does not mention docs/{name}"
        );
    }
}

#[test]
fn broken_links_are_found() {
    let from = root().join("README.md");
    let text = "# One  two\n\n[a](#one--two) [b](docs/none.md) [c](#three) [d](docs/limits.md#none) [e](https://x.y/z)";
    let wrong: Vec<String> =
        links_and_anchors(text).0.iter().filter_map(|link| broken(&from, text, link)).collect();
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    let text = "# `gw_*` and *two*\n\n[a](#gw_-and-two)";
    let (links, anchors) = links_and_anchors(text);
    assert_eq!(broken(&from, text, &links[0]), None, "{anchors:?}");
}

#[test]
fn each_record_of_a_decision_is_in_the_index_with_its_status() {
    let folder = root().join("docs/decisions");
    let index = fs::read_to_string(folder.join("README.md")).unwrap();
    for entry in fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name == "README.md" {
            continue;
        }
        let text = fs::read_to_string(folder.join(&name)).unwrap();
        assert!(text.lines().any(|line| line.starts_with("Status: ")), "{name} has no status");
        let row = index.lines().find(|line| line.contains(&format!("({name})")));
        let row = row.unwrap_or_else(|| panic!("the index lacks {name}"));
        assert!(row.starts_with(&format!("| {} |", &name[..4])) && row.contains("| in force"), "{row}");
    }
}

/// The last column of each table names tests: functions, modules, or files of them.
#[test]
fn each_test_that_the_threat_model_names_is_there() {
    let mut sources = vec![];
    files(&root().join("crates"), ".rs", &mut sources);
    let sources: String = sources.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let text = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let mut seen = 0;
    for row in text.lines().filter(|line| line.contains("`") && line.starts_with("| ")) {
        let tests = row.trim_end_matches(['|', ' ']).rsplit(" | ").next().unwrap();
        for named in tests.split('`').skip(1).step_by(2).filter(|named| named.contains("::")) {
            let name = named.rsplit("::").next().unwrap();
            let (name, end) =
                name.strip_suffix('*').map_or((name, ['(', ';', ' ']), |begin| (begin, ['_'; 3]));
            let begin = name.trim_end_matches('_');
            let is_there = ["fn ", "mod "].iter().any(|kind| {
                let declared = format!("{kind}{begin}");
                sources
                    .match_indices(&declared)
                    .any(|(at, _)| sources[at + declared.len()..].starts_with(end))
            });
            assert!(is_there, "docs/security.md names {named}, which is no test");
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen} tests are too few to be all");
}
