//! What a recording has of a node's data already, and emitting the rest.

use super::objects::Noted;
use super::references::{References, Round};
use super::{Attribution, Written};
use crate::Node;
use gondwana_elf::loaded::{self, LoadedFile};
use gondwana_memory::diff::Footprint;
use gondwana_memory::{Access, PAGE_SIZE};
use gondwana_recording::{
    BlockRecord, BlockSeries, ImageRecord, Omitted, Record, Reference, SegmentKind, SegmentRecord,
    SiteRecord, encode,
};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most records of a kind in a chunk: the longest are sites, of up to 130 bytes.
const RECORDS: usize = 400;

/// The most blocks in a chunk: at most 35 bytes each.
const BLOCKS: usize = 1600;

/// The most images in a chunk: their paths may be long.
const IMAGES: usize = 12;

/// The most pages of which written bytes are in one chunk: at most 600 bytes each.
const PAGES: usize = 80;

/// The most blocks below a page that a node emits, and the most others: some 12 MB of recording each. So the arrays
/// of a program that allocates small blocks for hours are emitted all the same.
const MOST_OBJECTS: u64 = 1 << 20;

/// The period of written bytes, pointers and images, which change all the time. A node that is killed loses as much
/// of them.
const PERIOD: Duration = Duration::from_secs(2);

/// Pages of variables that are searched at a time.
const LOOK: u32 = 1024;

/// Pages of variables for which the node's lock is held at a time.
const ASK: u32 = 64;

/// What the monitor has emitted.
#[derive(Debug)]
pub(crate) struct Emitted {
    /// When the recording began.
    began: Instant,
    written: Arc<Written>,
    threads: usize,
    sites: usize,
    small: u64,
    large: u64,
    omitted: Omitted,
    images: Vec<ImageRecord>,
    references: References,
    round: Round,
    looking: bool,
    /// Everything is emitted that does not change any more once the program has ended.
    looked: bool,
    last: Instant,
}

impl Emitted {
    /// Only the first of the loaded files, which the record of the start lists. The recording `began` just now; the
    /// event sink collects the bytes that this node writes in `written`.
    pub(crate) fn new(began: Instant, written: Arc<Written>) -> Self {
        Self {
            began,
            written,
            threads: 0,
            sites: 0,
            small: 0,
            large: 0,
            omitted: Omitted::default(),
            images: loaded::files().into_iter().take(IMAGES).map(image).collect(),
            references: References::default(),
            round: Round::default(),
            looking: false,
            looked: false,
            last: Instant::now(),
        }
    }

    /// The files that were emitted.
    pub(crate) fn images(&self) -> &[ImageRecord] {
        &self.images
    }

    /// Emits what is new. What changes all the time is emitted once in a [`PERIOD`].
    pub(crate) fn go_on(&mut self, node: &Node) {
        let sink = &mut |chunk: Vec<u8>| node.put_chunk(&chunk);
        self.emit_new(node, sink);
        if self.last.elapsed() >= PERIOD {
            self.last = Instant::now();
            self.looking = true;
            self.emit_images(node.me.0, sink);
            self.emit_written(node, sink);
        }
        if self.looking {
            self.look(node, sink);
        }
    }

    /// Emits everything: the program has ended on this node. Other nodes, which end later, may still cause more.
    pub(crate) fn prepare_end(&mut self, node: &Node) {
        let sink = &mut |chunk: Vec<u8>| node.put_chunk(&chunk);
        self.emit_new(node, sink);
        self.emit_images(node.me.0, sink);
        self.emit_written(node, sink);
        self.looking = true;
        while self.looking {
            self.look(node, sink);
        }
        self.looked = true;
    }

    /// Emits the rest.
    pub(crate) fn end(&mut self, node: &Node) {
        if !self.looked {
            self.prepare_end(node);
        }
        let sink = &mut |chunk: Vec<u8>| node.put_chunk(&chunk);
        self.emit_new(node, sink);
        self.emit_written(node, sink);
        self.omit(node, sink);
    }

    fn emit_new(&mut self, node: &Node, sink: &mut dyn FnMut(Vec<u8>)) {
        self.emit_threads(node, sink);
        if let Some(attribution) = node.monitor.attribution() {
            self.emit_objects(attribution, node.me.0, sink);
        }
    }

    fn emit_threads(&mut self, node: &Node, sink: &mut dyn FnMut(Vec<u8>)) {
        let threads = node.monitor.threads.after(self.threads, self.began);
        self.threads += threads.len();
        let stacks = threads.iter().map(|thread| SegmentRecord {
            start: thread.stack_start,
            end: thread.stack_end,
            kind: SegmentKind::Stacks,
        });
        emit(node.me.0, stacks.collect(), RECORDS, sink);
        emit(node.me.0, threads, RECORDS, sink);
    }

    fn emit_objects(&mut self, attribution: &Attribution, me: u16, sink: &mut dyn FnMut(Vec<u8>)) {
        let (mut blocks, mut end) = (Vec::with_capacity(BLOCKS), 0);
        attribution.objects.drain(|block| {
            let emitted = if block.bytes < PAGE_SIZE { &mut self.small } else { &mut self.large };
            if *emitted == MOST_OBJECTS {
                self.omitted.objects += 1;
                return;
            }
            *emitted += 1;
            // A block that has just replaced an overlapping one is emitted after it: blocks of one chunk have no
            // order.
            if blocks.len() == BLOCKS || block.address < end {
                emit_blocks(attribution, &mut self.sites, me, &mut blocks, sink);
            }
            end = block.address + block.bytes;
            blocks.push(block);
        });
        emit_blocks(attribution, &mut self.sites, me, &mut blocks, sink);
    }

    fn emit_images(&mut self, me: u16, sink: &mut dyn FnMut(Vec<u8>)) {
        let mut images: Vec<ImageRecord> = loaded::files().into_iter().map(image).collect();
        images.retain(|image| !self.images.contains(image));
        self.images.extend_from_slice(&images);
        emit(me, images, IMAGES, sink);
    }

    fn emit_written(&self, node: &Node, sink: &mut dyn FnMut(Vec<u8>)) {
        // Not until nothing is left: the program goes on writing.
        for _ in 0..self.written.pending().div_ceil(PAGES) {
            let record = |(page, footprint): (u32, Footprint)| gondwana_recording::WrittenRecord {
                address: node.geometry.address_of(page) as u64,
                blocks: footprint.blocks(),
                bytes: footprint.bytes().collect(),
            };
            let written = self.written.take(PAGES).into_iter().map(record).collect();
            emit::<gondwana_recording::WrittenRecord>(node.me.0, written, PAGES, sink);
        }
    }

    /// Searches the next pages of variables for pointers.
    fn look(&mut self, node: &Node, sink: &mut dyn FnMut(Vec<u8>)) {
        let Some(attribution) = node.monitor.attribution() else {
            self.looking = false;
            return;
        };
        let span = node.geometry.span();
        let pages = self.round.next(span.pages..node.geometry.pages(), LOOK);
        self.looking = !pages.is_empty();
        let mut found: Vec<Reference> = vec![];
        let mut from = pages.start;
        while from < pages.end {
            let count = node.geometry.consecutive(from, pages.end).min(ASK);
            let here = {
                let core = node.core();
                let here = |page: &u32| core.env.pages.access(*page) != Access::None;
                let words = |page| (page, core.env.pages.words(page..page + 1));
                (from..from + count).filter(here).map(words).collect::<Vec<_>>()
            };
            for (page, words) in here {
                let address = node.geometry.address_of(page);
                self.references
                    .look(address, words, &span, &attribution.objects, |reference| found.push(reference));
            }
            from += count;
        }
        emit(node.me.0, found, RECORDS, sink);
    }

    fn omit(&self, node: &Node, sink: &mut dyn FnMut(Vec<u8>)) {
        let omitted = Omitted {
            sites: node.monitor.attribution().map_or(0, |attribution| attribution.sites.dropped()),
            diffs: self.written.dropped(),
            references: self.references.dropped(),
            ..self.omitted
        };
        if omitted != Omitted::default() {
            sink(encode(node.me.0, &omitted));
        }
    }
}

/// Emits blocks, after their allocation sites.
fn emit_blocks(
    attribution: &Attribution,
    known: &mut usize,
    me: u16,
    blocks: &mut Vec<Noted>,
    sink: &mut dyn FnMut(Vec<u8>),
) {
    let sites = attribution.sites.after(*known);
    *known += sites.len();
    let site = |(number, stack): (u32, Arc<[usize]>)| SiteRecord {
        number,
        stack: stack.iter().map(|&address| address as u64).collect(),
    };
    emit(me, sites.into_iter().map(site).collect(), RECORDS, sink);
    let mappings = blocks.iter().filter(|block| block.mapping).map(|block| {
        let (start, bytes) = (block.address as u64, block.bytes.next_multiple_of(PAGE_SIZE) as u64);
        SegmentRecord { start, end: start + bytes, kind: SegmentKind::Mapping }
    });
    emit(me, mappings.collect(), RECORDS, sink);
    let objects = blocks.drain(..).map(|block| {
        let (site, thread) = attribution.sites.of(block.origin);
        BlockRecord { address: block.address as u64, bytes: block.bytes as u64, site, thread }
    });
    emit(me, BlockSeries::gather(objects), BLOCKS, sink);
}

/// Emits records, at most `most` in a chunk.
fn emit<T>(node: u16, mut records: Vec<T>, most: usize, sink: &mut dyn FnMut(Vec<u8>))
where
    Vec<T>: Record,
{
    while !records.is_empty() {
        let rest = records.split_off(records.len().min(most));
        sink(encode(node, &records));
        records = rest;
    }
}

fn image(loaded: LoadedFile) -> ImageRecord {
    ImageRecord {
        path: String::from_utf8_lossy(loaded.path.as_os_str().as_bytes()).into_owned(),
        base: loaded.base as u64,
        start: loaded.addresses.start as u64,
        end: loaded.addresses.end as u64,
        build_id: loaded.build_id,
    }
}
