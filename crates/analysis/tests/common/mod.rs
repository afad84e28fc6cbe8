//! Recordings of programs that were never run, and the names in them.

// Each test file uses a part of it.
#![allow(dead_code)]

use gondwana_analysis::{Analysis, Area, Code, Names, Variable, analyse};
use gondwana_monitor::{Direction, Kind};
use gondwana_page::PAGE_SIZE;
use gondwana_recording::{
    BlockRecord, End, Interval, Recording, Reference, RunRecord, SegmentKind, SegmentRecord, SiteRecord,
    Started, ThreadRecord, TransactionRow, WrittenRecord,
};
use std::ops::Range;

/// Where variables are.
pub(crate) const DATA: u64 = 0x60_0000;
/// Where the heap of node 0 is.
pub(crate) const HEAP: u64 = 0x10_0000_0000;
/// Bytes of a page.
pub(crate) const PAGE: u64 = PAGE_SIZE as u64;

/// A recording that is being made.
pub(crate) struct Made {
    pub recording: Recording,
}

impl Made {
    /// Some nodes that have started and ended in order.
    pub(crate) fn new(nodes: u16) -> Self {
        let segment = |start, end, kind| SegmentRecord { start, end, kind };
        let segments = vec![
            segment(DATA, DATA + 0x10_0000, SegmentKind::Data),
            segment(HEAP, HEAP + (1 << 30), SegmentKind::Heap),
            segment(HEAP + (1 << 32), HEAP + (2 << 32), SegmentKind::Stacks),
            segment(HEAP + (3 << 32), HEAP + (4 << 32), SegmentKind::Mapping),
        ];
        let started = |node| {
            let host = format!("host{node}");
            (node, Started { host, process: 100, segments: segments.clone(), images: vec![] })
        };
        let run = RunRecord {
            executable: "/opt/program".into(),
            command: vec!["program".into()],
            nodes,
            consistency: "rc".into(),
            fabric: "shm".into(),
            page_bytes: 4096,
            ..RunRecord::default()
        };
        let end = End { time: 2_000_000_000, messages: 10, bytes: 1000, lost: 0 };
        Self {
            recording: Recording {
                run,
                started: (0..nodes).map(started).collect(),
                ended: (0..nodes).map(|node| (node, end)).collect(),
                ..Recording::default()
            },
        }
    }

    /// Transactions of a thread that has the number of its node.
    pub(crate) fn row(
        &mut self,
        node: u16,
        kind: Kind,
        address: u64,
        unit: u8,
        peer: u16,
        count: u32,
    ) -> &mut Self {
        let moves = kind.is_fetch() || kind == Kind::Prefetched;
        let row = TransactionRow {
            address: address >> unit << unit,
            unit,
            kind,
            direction: if matches!(kind, Kind::Notice | Kind::Invalidation | Kind::Recall) {
                Direction::In
            } else {
                Direction::Out
            },
            peer,
            thread: u32::from(node) + 1,
            code: 0x40_1000 + u64::from(kind as u8),
            count,
            bytes: if moves { u64::from(count) * PAGE } else { 0 },
        };
        self.recording.intervals.push((node, Interval { begin: 0, end: 1_000_000_000, rows: vec![row] }));
        self
    }

    /// Transactions about one small unit.
    pub(crate) fn touch(&mut self, node: u16, kind: Kind, address: u64, peer: u16, count: u32) -> &mut Self {
        self.row(node, kind, address, 5, peer, count)
    }

    /// Transactions about a page.
    pub(crate) fn page(&mut self, node: u16, kind: Kind, address: u64, peer: u16, count: u32) -> &mut Self {
        self.row(node, kind, address, 12, peer, count)
    }

    /// A node has written these bytes.
    pub(crate) fn written(&mut self, node: u16, bytes: Range<u64>) -> &mut Self {
        for page in (bytes.start & !(PAGE - 1)..bytes.end).step_by(PAGE_SIZE) {
            let of_page = self.recording.written.iter().position(|(n, w)| *n == node && w.address == page);
            let mut record = of_page.map_or_else(
                || WrittenRecord { address: page, ..WrittenRecord::default() },
                |index| self.recording.written[index].1.clone(),
            );
            let mut blocks = [0_u64; 64];
            let set: Vec<usize> = (0..64).filter(|block| record.blocks >> block & 1 == 1).collect();
            set.into_iter().zip(&record.bytes).for_each(|(block, &bits)| blocks[block] = bits);
            for address in bytes.start.max(page)..bytes.end.min(page + PAGE) {
                blocks[((address - page) / 64) as usize] |= 1 << (address % 64);
            }
            record.blocks =
                (0..64).filter(|&block| blocks[block] > 0).fold(0, |bits, block| bits | 1 << block);
            record.bytes = blocks.into_iter().filter(|&bits| bits > 0).collect();
            self.recording.written.push((node, record));
        }
        self
    }

    /// A block that some calls have allocated.
    pub(crate) fn block(&mut self, node: u16, address: u64, bytes: u64, stack: &[u64]) -> &mut Self {
        let sites = &mut self.recording.sites;
        let known =
            sites.iter().find(|(n, site)| *n == node && site.stack == stack).map(|(_, site)| site.number);
        let number = known.unwrap_or_else(|| {
            let number = u32::try_from(sites.len()).unwrap() + 1;
            sites.push((node, SiteRecord { number, stack: stack.to_vec() }));
            number
        });
        self.recording
            .objects
            .push((node, BlockRecord { address, bytes, site: number, thread: u32::from(node) }));
        self
    }

    /// A pointer in a variable.
    pub(crate) fn pointer(&mut self, address: u64, value: u64) -> &mut Self {
        self.recording.references.push((0, Reference { address, value }));
        self
    }

    /// A thread.
    pub(crate) fn thread(&mut self, node: u16, number: u32, stack: Range<u64>) -> &mut Self {
        let thread = ThreadRecord {
            number,
            stack_start: stack.start,
            stack_end: stack.end,
            routine: 0x40_2000,
            time: 5,
        };
        self.recording.threads.push((node, thread));
        self
    }

    /// What it tells.
    pub(crate) fn analyse(&self, source: &Source) -> Analysis {
        analyse(&self.recording, source)
    }
}

/// A variable with what it consists of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub name: &'static str,
    pub start: u64,
    pub bytes: u64,
    /// Bytes of an element, and its fields by their first byte; 0 if it is no array.
    pub element: u64,
    pub fields: Vec<(u64, &'static str)>,
    /// It is a pointer to such elements.
    pub pointer: bool,
}

/// The names in a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source(pub Vec<Known>);

impl Source {
    fn known(&self, address: u64) -> Option<&Known> {
        self.0.iter().find(|known| (known.start..known.start + known.bytes).contains(&address))
    }
}

fn part(known: &Known, offset: u64) -> String {
    let (index, inside) = match known.element {
        0 => (String::new(), offset),
        element => (format!("[{}]", offset / element), offset % element),
    };
    let field = known.fields.iter().rev().find(|(start, _)| *start <= inside);
    index + &field.map_or(String::new(), |(_, name)| format!(".{name}"))
}

impl Names for Source {
    fn code(&self, address: u64) -> Vec<Code> {
        let function = match address {
            0x40_1000..0x40_2000 => "work",
            0x40_2000..0x40_3000 => "begin",
            0x40_3000..0x40_4000 => "make_grid",
            0x40_4000..0x40_5000 => "main",
            _ => return vec![],
        };
        let line = (address & 0xfff) as u32 + 1;
        let (function, file) = (function.to_owned(), "/home/user/grid.c".to_owned());
        vec![Code { function, offset: address & 0xfff, file, line, library: String::new() }]
    }

    /// Instructions that write are.
    fn is_atomic(&self, address: u64) -> bool {
        [Kind::Write, Kind::ColdWrite, Kind::ExcessWrite, Kind::Upgrade]
            .iter()
            .any(|kind| address == 0x40_1000 + *kind as u64)
    }

    fn variable(&self, address: u64) -> Option<Variable> {
        self.known(address).map(|known| Variable {
            name: known.name.into(),
            library: String::new(),
            start: known.start,
            bytes: known.bytes,
        })
    }

    fn field(&self, variable: &Variable, offset: u64) -> String {
        self.known(variable.start).map_or_else(String::new, |known| part(known, offset))
    }

    fn pointer(&self, address: u64) -> Option<(String, u64)> {
        self.known(address).filter(|known| known.pointer).map(|known| (known.name.into(), known.element))
    }

    fn target_field(&self, address: u64, offset: u64) -> String {
        self.known(address)
            .filter(|known| known.pointer)
            .map_or_else(String::new, |known| part(known, offset))
    }
}

/// The area with a name.
pub(crate) fn area<'a>(analysis: &'a Analysis, name: &str) -> &'a Area {
    let names: Vec<&str> = analysis.areas.iter().map(|area| &area.name[..]).collect();
    analysis.areas.iter().find(|area| area.name == name).unwrap_or_else(|| panic!("no {name} in {names:?}"))
}
