//! The list of test programs: arguments and expected exit of each.

use std::path::Path;

/// One line of the list.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The program, below the folder of the test programs.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Whether release consistency is enough for it.
    pub race_free: bool,
    /// Whether it synchronises by plain loads and stores that nothing tells of.
    pub plain: bool,
    /// Variables of its environment.
    pub variables: Vec<(String, String)>,
    /// Whether it can be run natively on any computer; if not, it checks its results itself.
    pub native: bool,
    /// Whether it needs nodes of one computer over shared memory.
    pub together: bool,
}

/// Reads the list.
pub(crate) fn read() -> Vec<Line> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/manifest.txt");
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).map(parse).collect()
}

fn parse(text: &str) -> Line {
    let fields: Vec<&str> = text.split('|').collect();
    let [program, arguments, tags] = fields[..] else { panic!("three fields expected: {text}") };
    let tags: Vec<&str> = tags.split_whitespace().collect();
    let kinds = ["both", "sc", "plain"].iter().filter(|kind| tags.contains(kind));
    assert_eq!(kinds.count(), 1, "both, sc or plain expected: {text}");
    Line {
        program: program.trim().to_owned(),
        arguments: arguments.split_whitespace().map(str::to_owned).collect(),
        race_free: tags.contains(&"both"),
        plain: tags.contains(&"plain"),
        variables: tags
            .iter()
            .filter_map(|tag| tag.strip_prefix("env=")?.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        native: !tags.contains(&"memory"),
        together: tags.contains(&"together"),
    }
}
