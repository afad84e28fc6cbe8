//! Writes the seeds of the corpora that are no texts: `cargo run -p gondwana-fuzz --example seeds`.

use gondwana_monitor::{Direction, Kind};
use gondwana_recording::{
    BlockRecord, ConstructRecord, End, FILE_HEADER, ImageRecord, Interval, LAUNCHER, Name, RunRecord,
    SegmentKind, SegmentRecord, SiteRecord, Started, Stretch, Stretches, ThreadRecord, TotalsRecord,
    TransactionRow, WrittenRecord, encode,
};
use std::fs;
use std::path::Path;

/// Where the variables of the made-up program begin, and its heap.
const DATA: u64 = 0x10_0000;
const HEAP: u64 = 0x4000_0000;
const PAGE: u64 = gondwana_page::PAGE_SIZE as u64;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let seed = |target: &str, name: &str, bytes: &[u8]| {
        fs::create_dir_all(corpus.join(target))?;
        fs::write(corpus.join(target).join(name), bytes)
    };
    seed("recording", "exchange", &recording("exchange"))?;
    seed("recording", "control-characters", &recording("a\u{1b}[2J\u{9b}b\r\n[[variable]]\n\u{202e}"))?;
    seed("recording", "no-place", &recording(" +0x"))?;
    seed(
        "handshake",
        "strangers",
        &[&[0][..], b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"].concat(),
    )?;
    for (name, how) in [("hello", 0_u8), ("hello-encrypted", 1)] {
        let fields = [1, u16::from(how), 2, 1, 3].map(u16::to_le_bytes).concat();
        let token = if how == 0 { b"without-secrets." } else { &[7; 16] };
        let noise = if how == 0 { vec![] } else { vec![5; 48] };
        let flight = [&[how][..], b"GONDWANA", &fields, &[9; 16], &noise, token].concat();
        seed("handshake", name, &flight)?;
    }
    seed("handshake", "answer", &[&[2, 0, 0, 1, 0][..], b"without-secrets."].concat())?;
    seed("handshake", "refusal", &[2, 1, 0, 2, 0])?;
    let message = [&[3, 0, 0, 0, 5, 0, 0, 0][..], b"abc", b"bulk!"].concat();
    let (first, second) = message.split_at(6);
    let frame = |bytes: &[u8]| {
        let length = u16::try_from(bytes.len()).expect("short frames");
        [&length.to_le_bytes(), bytes].concat()
    };
    seed("frames", "two-frames", &[&[4][..], &frame(first), &frame(second), &frame(&message)].concat())?;
    seed("frames", "too-long", &[&[9][..], &frame(&[255; 8])].concat())?;
    for kind in 0..24_u8 {
        seed("messages", &format!("kind-{kind}"), &[&[kind][..], &[1; 48]].concat())?;
    }
    for kind in [0x80_u8, 0x84, 0x90, 0x94] {
        seed("messages", &format!("sync-{kind:x}"), &[&[kind, 0, 1, 0, 2][..], &[0; 19]].concat())?;
    }
    let mut agent = b"Welcome!\n\x01gondwana agent\n".to_vec();
    let frames: [(u8, &[u8]); 8] = [
        (0, br#""WantInput""#),
        (0, br#"{"Started":[1,4711]}"#),
        (0, br#"{"Failed":"no such program"}"#),
        (0, br#"{"Signal":{"node":1,"signal":15}}"#),
        (0, br#"{"Report":[0,"Up"]}"#),
        (0, br#"{"Prepare":{"version":"0.1.0","path":[47],"arguments":[[97]],"environment":[[[97],[98]]],"folder":[47],"nodes":1,"host":"a","address":"127.0.0.1","loopback":true,"span":null}}"#),
        (1, b"output"),
        (4, b"\x01\x00chunk"),
    ];
    for (kind, contents) in frames {
        let length = u32::try_from(contents.len()).expect("short frames");
        agent.extend_from_slice(&length.to_le_bytes());
        agent.push(kind);
        agent.extend_from_slice(contents);
    }
    seed("agent", "frames", &agent)
}

/// A recording of two nodes, whose threads read and write a variable and a block, with a name in it.
fn recording(name: &str) -> Vec<u8> {
    let run = RunRecord {
        version: "0.1.0".to_owned(),
        executable: "/nowhere/program".to_owned(),
        command: vec![format!("./{name}"), "1".to_owned()],
        nodes: 2,
        consistency: "rc".to_owned(),
        fabric: "shm".to_owned(),
        threads: "round-robin".to_owned(),
        memory: "striped:1".to_owned(),
        page_bytes: 1 << gondwana_page::PAGE_BITS,
        ..RunRecord::default()
    };
    let mut file = [&[0][..], &FILE_HEADER, &encode(LAUNCHER, &run)].concat();
    for node in 0..2_u16 {
        let segments = [(DATA, SegmentKind::Data), (HEAP, SegmentKind::Heap)]
            .map(|(start, kind)| SegmentRecord { start, end: start + (1 << 20), kind });
        let image = ImageRecord {
            path: "/nowhere/program".to_owned(),
            base: 0,
            start: 0,
            end: 1 << 20,
            ..ImageRecord::default()
        };
        let started =
            Started { host: name.to_owned(), process: 77, segments: segments.to_vec(), images: vec![image] };
        let thread = ThreadRecord { number: u32::from(node), routine: 0x1000, ..ThreadRecord::default() };
        let site = SiteRecord { number: 1, stack: vec![0x1234, 0x2345] };
        let object = BlockRecord { address: HEAP, bytes: 64 * PAGE, site: 1, thread: 0 };
        let row = |page: u64, start: u64, kind: Kind| TransactionRow {
            address: start + page * PAGE,
            unit: gondwana_page::PAGE_BITS,
            kind,
            direction: Direction::Out,
            peer: 1 - node,
            thread: u32::from(node) + 1,
            code: 0x1100 + page * 8,
            count: 90,
            bytes: 90 * PAGE,
        };
        // Each node has one half of the pages for itself.
        let pages = u64::from(node) * 8..u64::from(node) * 8 + 8;
        let rows = pages.clone().flat_map(|page| {
            [DATA, HEAP]
                .into_iter()
                .flat_map(move |start| [(page, start, Kind::Read), (page, start, Kind::Diff)])
        });
        let rows = rows.map(|(page, start, kind)| row(page, start, kind)).collect();
        let written =
            pages.map(|page| WrittenRecord { address: DATA + page * PAGE, blocks: 1, bytes: vec![0xff] });
        let stretch = Stretch { row: row(32, HEAP, Kind::Read), parts: 2 };
        file.extend(encode(node, &started));
        file.extend(encode(node, &vec![thread]));
        file.extend(encode(node, &vec![site]));
        file.extend(encode(node, &vec![object]));
        file.extend(encode(
            node,
            &vec![Name { start: HEAP + 64 * PAGE, end: HEAP + 65 * PAGE, name: name.to_owned() }],
        ));
        file.extend(encode(node, &Interval { begin: 0, end: 1_000_000, rows }));
        file.extend(encode(node, &Stretches { begin: 0, end: 1_000_000, stretches: vec![stretch] }));
        file.extend(encode(node, &written.collect::<Vec<_>>()));
        file.extend(encode(
            node,
            &TotalsRecord { time: 1_000_000, faults: 90, messages: 180, bytes: 1 << 20 },
        ));
        let construct = |region| ConstructRecord {
            code: 0x1000,
            region,
            dealt: !region,
            thread: node.into(),
            count: 10,
            worked: 1_000_000,
            longest: 200_000,
            waited: u64::from(node) * 500_000,
        };
        file.extend(encode(node, &vec![construct(false), construct(true)]));
        file.extend(encode(node, &End { time: 2_000_000, messages: 180, bytes: 1 << 20, lost: 0 }));
    }
    file
}
