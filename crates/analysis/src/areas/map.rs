//! The owner of each touched address.

use super::blocks::Blocks;
use super::layer::Layer;
use crate::names::{Names, Variable};
use crate::range_set::{RangeSet, common, length};
use gondwana_recording::{Recording, SegmentKind};
use std::collections::HashMap;
use std::ops::Range;

/// Blocks of one group at most this many bytes apart are one piece: between them is only the allocator's metadata.
const ALLOCATORS_OWN: u64 = 64;
/// Touched memory of a heap without known blocks is one area as long as its holes are smaller than this.
const HOLE: u64 = 64 << 10;
/// The alignment at which variables are searched behind the end of another one.
const ALIGNMENT: u64 = 4;
/// The most queries for variables, which bounds the time for a recording with absurd segments.
const LOOKS: u64 = 1 << 24;

/// An owner of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Data that the program has named, by the index of the name in [`Map::given`].
    Named(usize),
    /// A variable.
    Variable(Variable),
    /// The blocks of a group, by its number in [`Blocks`].
    Group(usize),
    /// The stack of a thread.
    Stack(u32),
    /// A mapping of the program.
    Mapping(Range<u64>),
    /// A part of a heap in which there is no known block.
    Heap(Range<u64>),
    /// Variables without names, of the file with this index in [`Map::images`].
    Unnamed(Option<usize>),
    /// Anything else.
    Other,
}

impl Owner {
    /// True if the program has allocated or defined this memory, rather than that it is between such memory.
    fn is_something(&self) -> bool {
        matches!(
            self,
            Self::Named(_) | Self::Variable(_) | Self::Group(_) | Self::Stack(_) | Self::Mapping(_)
        )
    }
}

/// Addresses of one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    range: Range<u64>,
    /// By its index in [`Map::owners`].
    owner: usize,
}

/// The owners of all touched addresses.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    /// The owners. The last one is [`Owner::Other`].
    pub(crate) owners: Vec<Owner>,
    /// The blocks.
    pub(crate) blocks: Blocks,
    /// Names that the program has given, and the first address of each.
    pub(crate) given: Vec<(String, u64)>,
    /// Paths and addresses of the loaded files.
    pub(crate) images: Vec<(String, Range<u64>)>,
    /// Ascending.
    pieces: Vec<Piece>,
}

impl Map {
    /// Finds the owners of all touched addresses.
    pub(crate) fn new(recording: &Recording, names: &dyn Names, touched: &RangeSet) -> Self {
        let mut images: Vec<(String, Range<u64>)> = vec![];
        let later = recording.images.iter().map(|(_, image)| image);
        for image in recording.started.iter().flat_map(|(_, started)| &started.images).chain(later) {
            let entry = (image.path.clone(), image.start..image.end);
            if !images.contains(&entry) {
                images.push(entry);
            }
        }
        let blocks = Blocks::of(recording, names);
        let (given, named) = given(recording);
        let mut builder = Builder {
            names,
            named,
            segments: segments(recording),
            stacks: stacks(recording, &blocks),
            looks: LOOKS,
            heap: None,
            known: HashMap::new(),
            map: Self { owners: vec![], blocks, given, images, pieces: vec![] },
        };
        touched.ranges().iter().for_each(|range| builder.range(range));
        let mut map = builder.map;
        map.owners.push(Owner::Other);
        map
    }

    /// The owner of an address.
    pub(crate) fn at(&self, address: u64) -> usize {
        let next = self.pieces.partition_point(|piece| piece.range.end <= address);
        let piece = self.pieces.get(next).filter(|piece| piece.range.start <= address);
        piece.map_or(self.owners.len() - 1, |piece| piece.owner)
    }

    /// The owners of a range, with the part of the range that each has.
    pub(crate) fn pieces(&self, range: &Range<u64>) -> impl Iterator<Item = (usize, Range<u64>)> {
        let first = self.pieces.partition_point(|piece| piece.range.end <= range.start);
        let range = range.clone();
        let end = range.end;
        let inside = self.pieces[first..].iter().take_while(move |piece| piece.range.start < end);
        inside.map(move |piece| (piece.owner, common(&piece.range, &range)))
    }

    /// The touched addresses of an owner.
    pub(crate) fn ranges(&self, owner: usize) -> Vec<Range<u64>> {
        let pieces = self.pieces.iter().filter(|piece| piece.owner == owner);
        pieces.map(|piece| piece.range.clone()).collect()
    }

    /// The shares of owners in a transaction about a range, as owners and weights; never empty.
    ///
    /// The bytes of the transaction count if they are known, otherwise all bytes of the range. Memory that the
    /// program has not allocated counts only where there is no other.
    pub(crate) fn shares(&self, range: &Range<u64>, bytes: Option<&RangeSet>) -> Vec<(usize, u64)> {
        let mut shares: Vec<(usize, [u64; 3])> = vec![];
        for (owner, piece) in self.pieces(range) {
            let exact = bytes.map_or(0, |bytes| bytes.within(&piece).length());
            let named = if self.owners[owner].is_something() { length(&piece) } else { 0 };
            let weights = [exact, named, length(&piece)];
            match shares.iter_mut().find(|(known, _)| *known == owner) {
                Some((_, sum)) => sum.iter_mut().zip(weights).for_each(|(sum, more)| *sum += more),
                None => shares.push((owner, weights)),
            }
        }
        let of = (0..3).find(|&of| shares.iter().any(|(_, weights)| weights[of] > 0));
        let Some(of) = of else { return vec![(self.owners.len() - 1, 1)] };
        let found = shares.into_iter().map(|(owner, weights)| (owner, weights[of]));
        found.filter(|(_, weight)| *weight > 0).collect()
    }
}

/// Names that the program has set, each with its first address, and their ranges.
fn given(recording: &Recording) -> (Vec<(String, u64)>, Layer<usize>) {
    let (mut given, mut named) = (Vec::<(String, u64)>::new(), Layer::default());
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (_, name) in &recording.names {
        let place = *known.entry(&name.name).or_insert_with(|| {
            given.push((name.name.clone(), name.start));
            given.len() - 1
        });
        given[place].1 = given[place].1.min(name.start);
        named.put(name.start..name.end, place);
    }
    (given, named)
}

/// The segments of all nodes, as last recorded, with the start of each.
fn segments(recording: &Recording) -> Layer<(SegmentKind, u64)> {
    let mut segments = Layer::default();
    let later = recording.segments.iter().map(|(_, segment)| segment);
    for segment in recording.started.iter().flat_map(|(_, started)| &started.segments).chain(later) {
        segments.put(segment.start..segment.end, (segment.kind, segment.start));
    }
    segments
}

/// The stacks of all threads; an address that several threads used as stack belongs to the last. The memory of ended
/// threads is reused: where a block is now, there is no stack.
fn stacks(recording: &Recording, blocks: &Blocks) -> Layer<u32> {
    let mut stacks = Layer::default();
    for (_, thread) in recording.threads.iter().filter(|(_, thread)| thread.stack_start > 0) {
        let stack = thread.stack_start..thread.stack_end.max(thread.stack_start);
        let mut at = stack.start;
        for (block, _) in blocks.layer.within(&stack) {
            stacks.put(at..block.start, thread.number);
            at = block.end;
        }
        stacks.put(at..stack.end, thread.number);
    }
    stacks
}

struct Builder<'a> {
    names: &'a dyn Names,
    /// Ranges that the program has named.
    named: Layer<usize>,
    segments: Layer<(SegmentKind, u64)>,
    stacks: Layer<u32>,
    /// How many queries for variables are left.
    looks: u64,
    /// The part of a heap without known blocks that was found last.
    heap: Option<usize>,
    /// Owners that have more than one piece.
    known: HashMap<Key, usize>,
    map: Map,
}

/// The identity of an owner with more than one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Named(usize),
    Variable(u64),
    Group(usize),
    Stack(u32),
    Mapping(u64),
    Unnamed(Option<usize>),
}

impl Builder<'_> {
    /// Finds the owners of touched addresses, which are above all others that had to be found before.
    fn range(&mut self, range: &Range<u64>) {
        let mut at = range.start;
        let named: Vec<_> = self.named.within(range).collect();
        for (inside, name) in named {
            self.without_given_name(&(at..inside.start));
            self.piece(inside.clone(), Key::Named(name), || Owner::Named(name));
            at = inside.end;
        }
        self.without_given_name(&(at..range.end));
    }

    /// The same for addresses that the program has not named.
    fn without_given_name(&mut self, range: &Range<u64>) {
        let mut at = range.start;
        let stacks: Vec<_> = self.stacks.within(range).collect();
        for (stack, thread) in stacks {
            self.below_stacks(at..stack.start);
            self.piece(stack.clone(), Key::Stack(thread), || Owner::Stack(thread));
            at = stack.end;
        }
        self.below_stacks(at..range.end);
    }

    /// The same for addresses where there is no stack: blocks, and what is between them.
    fn below_stacks(&mut self, range: Range<u64>) {
        let mut at = range.start;
        let mut before = None;
        let blocks: Vec<_> = self.map.blocks.layer.within(&range).collect();
        for (block, object) in blocks {
            let group = self.map.blocks.objects[object].1;
            let mut start = block.start;
            if before == Some(group) && start - at <= ALLOCATORS_OWN {
                start = at;
            }
            self.rest(at..start);
            self.piece(start..block.end, Key::Group(group), || Owner::Group(group));
            (at, before) = (block.end, Some(group));
        }
        self.rest(at..range.end);
    }

    /// The same for addresses where there is no block either.
    fn rest(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let segments: Vec<_> = self.segments.within(&range).collect();
        for (inside, (kind, start)) in segments {
            match kind {
                SegmentKind::Data => self.variables(inside),
                SegmentKind::Heap => self.heap(inside),
                SegmentKind::Mapping => {
                    self.piece(inside.clone(), Key::Mapping(start), || Owner::Mapping(start..inside.end));
                }
                // A stack of an unknown thread: addresses without a piece belong to [`Owner::Other`].
                SegmentKind::Stacks => {}
            }
        }
    }

    fn variables(&mut self, range: Range<u64>) {
        let mut at = range.start;
        let mut unnamed = at;
        while at < range.end && self.looks > 0 {
            self.looks -= 1;
            let found = self.names.variable(at).map(|variable| {
                let end = variable.start.saturating_add(variable.bytes);
                (common(&(variable.start..end), &(at..range.end)), variable)
            });
            let Some((inside, variable)) = found.filter(|(inside, _)| inside.contains(&at)) else {
                at = (at | (ALIGNMENT - 1)).saturating_add(1);
                continue;
            };
            self.unnamed(unnamed..at);
            (at, unnamed) = (inside.end, inside.end);
            self.piece(inside, Key::Variable(variable.start), || Owner::Variable(variable));
        }
        self.unnamed(unnamed..range.end);
    }

    fn unnamed(&mut self, range: Range<u64>) {
        let image = self.map.images.iter().position(|(_, image)| image.contains(&range.start));
        self.piece(range, Key::Unnamed(image), || Owner::Unnamed(image));
    }

    fn heap(&mut self, range: Range<u64>) {
        let near = |owner: &usize| matches!(&self.map.owners[*owner], Owner::Heap(known) if range.start - known.end < HOLE);
        let owner = self.heap.filter(near).unwrap_or_else(|| {
            self.map.owners.push(Owner::Heap(range.clone()));
            self.map.owners.len() - 1
        });
        self.heap = Some(owner);
        self.map.owners[owner] = match &self.map.owners[owner] {
            Owner::Heap(known) => Owner::Heap(known.start..range.end),
            other => other.clone(),
        };
        self.map.pieces.push(Piece { range, owner });
    }

    fn piece(&mut self, range: Range<u64>, key: Key, owner: impl FnOnce() -> Owner) {
        if range.is_empty() {
            return;
        }
        let owner = *self.known.entry(key).or_insert_with(|| {
            self.map.owners.push(owner());
            self.map.owners.len() - 1
        });
        match self.map.pieces.last_mut() {
            Some(last) if last.owner == owner && last.range.end == range.start => last.range.end = range.end,
            _ => self.map.pieces.push(Piece { range, owner }),
        }
    }
}
