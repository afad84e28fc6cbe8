//! Machines that cannot be: the error names line and field.

use gondwana_sim::{Description, shipped};

/// What stands in the machine's file, something wrong instead, and the error.
const LINES: [(&str, &str, &str); 16] = [
    ("nodes = 2", "nodes = 10000", "nodes: 10000 nodes: a simulated machine has 1 to 64"),
    ("nodes = 2", "nodes = 0", "nodes: 0 nodes: a simulated machine has 1 to 64"),
    (
        "processors = 8 ",
        "processors = 800 ",
        "processors: 2 nodes of 800 processors: there may be 128 processors in all",
    ),
    (
        "size = \"16KiB\"",
        "size = -16384",
        "l1.size: '-16384' is no amount of memory such as 4096, 512KiB, 64M or 1TiB",
    ),
    (
        "size = \"16KiB\"",
        "size = \"15KiB\"",
        "l1.size: 15KiB in sets of 1 lines of 32 bytes: the number of sets must be a power of two",
    ),
    ("line = 32", "line = 128", "l1.line: 128 bytes: longer than a line of the second cache, 64"),
    ("line = 64", "line = 8192", "l2.line: 8192 bytes: a line has a power of two of bytes, from 8 to 256"),
    ("ways = 1\n\n[l2]", "ways = 0\n\n[l2]", "l1.ways: 0 ways: a set has 1 to 64 lines"),
    (
        "placement = \"local\"",
        "placement = \"nearby\"",
        "memory.placement: 'nearby': there is no set named 'nearby'",
    ),
    (
        "placement = \"local\"",
        "placement = \"block\"",
        "memory.placement: 'block': a simulated memory has no end to divide by; striped is possible",
    ),
    (
        "placement = \"local\"",
        "colouring = \"blue\"",
        "memory.colouring: unknown variant `blue`, expected one of `virtual`, `cyclic`, `random`",
    ),
    (
        "topology = \"direct\"",
        "topology = \"torus\"",
        "network.topology: unknown variant `torus`, expected one of `direct`, `ring`, `hypercube`, `switch`",
    ),
    (
        "reply = 170",
        "hops = 5\nreply = 170",
        "controller.hops: 5: a line comes from a third node by 3 messages, or by 4",
    ),
    ("bandwidth = 800", "bandwidth = 0", "network.bandwidth: 0: from 1 to 10000000 is possible"),
    ("mhz = 167", "mhz = 1.5", "processor.mhz: invalid type: floating point `1.5`, expected u64"),
    ("latency = 90", "latency = -90", "bus.latency: invalid value: integer `-90`, expected u64"),
];

#[test]
fn an_error_names_line_and_field() {
    let text = shipped::find("wildfire-2x8").unwrap();
    for (right, wrong, message) in LINES {
        let changed = text.replacen(right, wrong, 1);
        assert_ne!(changed, text, "{right} is in no line");
        // Machines get comments, which move lines.
        let line = changed.lines().position(|line| !text.lines().any(|old| old == line)).unwrap() + 1;
        let expected = format!("line {line}: {message}");
        assert_eq!(Description::parse(&changed).unwrap_err().to_string(), expected, "{wrong}");
    }
}

/// What stands in the place of a translation buffer's fields, and the error.
const TLBS: [(&str, &str); 6] = [
    (
        "entries = 48\nways = 4\nmiss = 100",
        "entries: 48 entries in sets of 4: the number of sets must be a power of two",
    ),
    (
        "entries = 4\nways = 8\nmiss = 100",
        "entries: 4 entries in sets of 8: the number of sets must be a power of two",
    ),
    (
        "entries = 1000000\nways = 1\nmiss = 100",
        "entries: 1000000 entries: a translation buffer has at most 65536",
    ),
    ("entries = 64\nways = 0\nmiss = 100", "ways: 0 ways: a set has one entry at least"),
    ("entries = 64\nways = 64\nmiss = 2000000", "miss: 2000000 ns: a time is at most 1000000 ns"),
    (
        "entries = 64\nways = 64\nmiss = 100\npage_size = \"5KiB\"",
        "page_size: 5120: a page has a power of two of bytes, from 1KiB to 1GiB",
    ),
];

/// The same of a far memory cache, on a machine with lines of 64 bytes in the second cache and pages of 8 KiB.
const FAR_CACHES: [(&str, &str); 8] = [
    (
        "size = \"32MiB\"\nways = 0\nline = 64\nlatency = 1\noccupancy = 1",
        "ways: 0 ways: a set has 1 to 64 lines",
    ),
    ("size = 0\nways = 0\nline = 64\nlatency = 1\noccupancy = 1", "ways: 0 ways: a set has 1 to 64 lines"),
    (
        "size = \"32MiB\"\nways = 4\nline = 16384\nlatency = 1\noccupancy = 1",
        "line: 16384 bytes: a line has a power of two of bytes, from those of the second cache's, 64, to those of a page, 8192",
    ),
    (
        "size = \"32MiB\"\nways = 4\nline = 32\nlatency = 1\noccupancy = 1",
        "line: 32 bytes: a line has a power of two of bytes, from those of the second cache's, 64, to those of a page, 8192",
    ),
    (
        "size = \"33MiB\"\nways = 4\nline = 64\nlatency = 1\noccupancy = 1",
        "size: 33MiB in sets of 4 lines of 64 bytes: the number of sets must be a power of two",
    ),
    ("size = \"2GiB\"\nways = 4\nline = 64\nlatency = 1\noccupancy = 1", "size: a cache has at most 1GiB"),
    (
        "size = \"32MiB\"\nways = 4\nline = 64\nlatency = 2000000\noccupancy = 1",
        "latency: 2000000 ns: a time is at most 1000000 ns",
    ),
    (
        "size = \"32MiB\"\nways = 4\nline = 64\nlatency = 1\noccupancy = -1",
        "occupancy: invalid value: integer `-1`, expected u64",
    ),
];

/// The same of a directory cache.
const DIRECTORY_CACHES: [(&str, &str); 4] = [
    ("entries = 1024\nways = 0\nmiss = 100", "ways: 0 ways: a set has 1 to 64 entries"),
    (
        "entries = 1000\nways = 4\nmiss = 100",
        "entries: 1000 entries in sets of 4: the number of sets must be a power of two",
    ),
    (
        "entries = 33554432\nways = 1\nmiss = 100",
        "entries: 33554432 entries: a directory cache has at most 16777216",
    ),
    ("entries = 1024\nways = 4\nmiss = 2000000", "miss: 2000000 ns: a time is at most 1000000 ns"),
];

#[test]
fn errors_of_optional_parts_name_line_and_field() {
    let text = shipped::find("wildfire-2x8").unwrap();
    let lines = text.lines().count();
    let tlbs = TLBS.map(|case| ("tlb", case));
    let directories = DIRECTORY_CACHES.map(|case| ("directory_cache", case));
    let far_caches = FAR_CACHES.map(|case| ("far_cache", case));
    for (part, (fields, message)) in tlbs.into_iter().chain(directories).chain(far_caches) {
        let field = message.split(':').next().unwrap();
        let line = fields.lines().position(|line| line.starts_with(field)).unwrap();
        let error = Description::parse(&format!("{text}[{part}]\n{fields}\n")).unwrap_err().to_string();
        assert_eq!(error, format!("line {}: {part}.{message}", lines + line + 2), "{fields}");
    }
}

/// What stands in the part about migration and replication, something wrong instead, and the error.
const REPLICATIONS: [(&str, &str, &str); 8] = [
    (
        "threshold = 8",
        "threshold = 0",
        "threshold: 0: a page without excess misses gives no reason for anything; 1 is the least",
    ),
    (
        "counters = 64",
        "counters = 0",
        "counters: 0 counters: a node has one at least; without this field it has one for each page",
    ),
    ("pages = 4", "pages = 0", "pages: 0: the daemon would do nothing"),
    (
        "memory = \"1GiB\"",
        "memory = \"4KiB\"",
        "memory: 4096 bytes: a node has memory for one page at least, 8192",
    ),
    ("page = 1", "page = 2000000", "page: 2000000 ns: a time is at most 1000000 ns"),
    ("period = 1000", "period = 100000000001", "period: 100000000001 ns: a period is at most 100 s"),
    ("migrations = 1", "migrations = -1", "migrations: invalid value: integer `-1`, expected u64"),
    ("ga2lpa = 1", "ga2lpa = 1000001", "ga2lpa: 1000001 ns: a time is at most 1000000 ns"),
];

#[test]
fn an_error_in_replication_names_line_and_field() {
    let fields = "period = 1000\nthreshold = 8\ncounters = 64\nmigrations = 1\npages = 4\nmemory = \"1GiB\"\nlook = 1\n\
                  page = 1\nlpa2ga = 1\nga2lpa = 1\n";
    let machine = shipped::find("wildfire-2x8").unwrap().split("[replication]").next().unwrap().to_owned();
    assert!(Description::parse(&format!("{machine}[replication]\n{fields}")).is_ok());
    for (right, wrong, message) in REPLICATIONS {
        let part =
            format!("[replication]\n{}", fields.replacen(&format!("{right}\n"), &format!("{wrong}\n"), 1));
        let text = format!("{machine}{part}");
        let line = text.lines().position(|line| line == wrong).unwrap() + 1;
        let error = Description::parse(&text).unwrap_err().to_string();
        assert_eq!(error, format!("line {line}: replication.{message}"), "{wrong}");
    }
}

#[test]
fn an_error_in_the_scheduler_names_line_and_field() {
    let machine = shipped::find("wildfire-2x8").unwrap();
    let lines = machine.lines().count();
    for (field, message) in [
        (
            "policy = \"fair\"",
            "policy: unknown variant `fair`, expected one of `bound`, `float`, `affinity`, `hierarchical`, `static`, `dynamic`",
        ),
        ("slice = 0", "slice: 0: from 1 to 10000000000 is possible"),
        ("switch = 2000000", "switch: 2000000 ns: a time is at most 1000000 ns"),
        ("imbalance = 0", "imbalance: 0: from 1 to 1000000 is possible"),
        ("period = 0", "period: 0: from 1 to 100000000000 is possible"),
    ] {
        let error = Description::parse(&format!("{machine}[scheduler]\n{field}\n")).unwrap_err().to_string();
        assert_eq!(error, format!("line {}: scheduler.{message}", lines + 2));
    }
}

#[test]
fn missing_parts_and_unknown_fields_are_named() {
    let text = shipped::find("wildfire-2x8").unwrap();
    let without = &text[..text.find("[controller]").unwrap()];
    assert_eq!(
        Description::parse(without).unwrap_err().to_string().split_once(": ").unwrap().1,
        "nodes: 2 nodes need a [controller]"
    );
    let error = Description::parse(&format!("{text}colour = 1\n")).unwrap_err().to_string();
    assert!(error.contains("unknown field `colour`"), "{error}");
    let error = Description::parse("name = \"x\"\n").unwrap_err().to_string();
    assert!(error.contains("missing field `nodes`"), "{error}");
    assert!(Description::parse("= 3").is_err());
}
