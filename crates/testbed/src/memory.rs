//! The memory of one simulated node, which also checks that the machine handles it in the right order.

use crate::effects::{Effects, Observed};
use gondwana_coherence::{
    Access, Claims, Continuation, Encoded, Env, Event, Exposure, MESSAGE_TAG, Message, Page, RemoteAccess,
    Waiter, Writers,
};
use gondwana_topology::{NodeId, NodeSet};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Frames, twins and protections of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Memory {
    size: usize,
    /// A monitor observes the node.
    pub observed: bool,
    frames: Vec<u8>,
    twins: Vec<Option<Vec<u8>>>,
    /// What the program may do with each page.
    pub access: Vec<Access>,
    /// The common memory, the same on all nodes, and the pages that the program of this one uses there.
    shared: BTreeMap<Page, Vec<u8>>,
    common: BTreeSet<Page>,
    words: Vec<Option<Word>>,
    /// Pages that others have copied beside this node's writers, at most [`ROOM`].
    logged: BTreeSet<Page>,
    /// Notices that others have posted to this node, at most [`ROOM`].
    posted: Vec<(Page, NodeId)>,
}

/// Little, so that readers sometimes have to take write access, and notices to be sent.
const ROOM: usize = 2;

/// An exposed page: see [`Env::expose`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Word {
    exposure: Exposure,
    claims: Claims,
    /// The new home has not said yet that it has copied the page.
    locked: bool,
}

impl Memory {
    /// Memory of so many pages of `size` bytes, all zero, which the program may not access.
    pub fn new(pages: usize, size: usize) -> Self {
        Self {
            size,
            observed: false,
            frames: vec![0; pages * size],
            twins: vec![None; pages],
            access: vec![Access::None; pages],
            shared: BTreeMap::new(),
            common: BTreeSet::new(),
            words: vec![None; pages],
            logged: BTreeSet::new(),
            posted: Vec::new(),
        }
    }

    /// The page of an address.
    pub fn page_of(&self, address: usize) -> Page {
        Page(u32::try_from(address / self.size).expect("pages have numbers of 32 bits"))
    }

    /// The page that a thread must fault on to access an address, if it must.
    pub(crate) fn lacks(&self, address: usize, access: Access) -> Option<Page> {
        let page = self.page_of(address);
        (self.access[page.0 as usize] < access).then_some(page)
    }

    /// The byte at an address, as a thread reads it.
    pub fn read(&self, address: usize) -> u8 {
        let page = self.page_of(address);
        if self.common.contains(&page) {
            self.shared[&page][address % self.size]
        } else {
            self.frames[address]
        }
    }

    /// A thread writes a byte of a page that is not common.
    pub fn write(&mut self, address: usize, value: u8) {
        self.frames[address] = value;
    }

    /// A thread of the node with this number writes a byte: in its memory, or if the page is common in those of all nodes.
    pub fn write_on<'a>(
        memories: impl Iterator<Item = &'a mut Self>,
        node: usize,
        address: usize,
        value: u8,
    ) {
        let mut memories: Vec<_> = memories.collect();
        let page = memories[node].page_of(address);
        if !memories[node].common.contains(&page) {
            return memories[node].write(address, value);
        }
        for memory in memories {
            let offset = address % memory.size;
            memory.shared.get_mut(&page).expect("it is common")[offset] = value;
        }
    }

    /// True if the page has a twin.
    pub fn has_twin(&self, page: Page) -> bool {
        self.twins[page.0 as usize].is_some()
    }

    /// Who has come for an open page since it was opened.
    pub fn claims(&self, page: Page) -> Claims {
        self.words[page.0 as usize].map_or(Claims::default(), |word| word.claims)
    }

    /// True if a notice about the page has been posted to this node, which has not looked yet.
    pub fn has_posted_notice(&self, page: Page) -> bool {
        self.posted.iter().any(|&(posted, _)| posted == page)
    }

    fn diff(&mut self, page: Page, out: &mut Vec<u8>) -> usize {
        let twin = self.twins[page.0 as usize].clone().expect("a diff needs a twin");
        let mut bytes = 0;
        for (offset, (new, old)) in (0_u16..).zip(self.frame(page).iter().zip(&twin)) {
            if new != old {
                out.extend_from_slice(&offset.to_le_bytes());
                out.push(*new);
                bytes += 1;
            }
        }
        bytes
    }

    fn frame(&mut self, page: Page) -> &mut [u8] {
        let start = page.0 as usize * self.size;
        &mut self.frames[start..start + self.size]
    }
}

/// The bytes that machines send for a message.
pub fn encoded(message: &impl Encoded) -> Vec<u8> {
    let mut bytes = vec![MESSAGE_TAG];
    bytes.extend(postcard::to_stdvec(message).expect("messages can be encoded"));
    bytes
}

/// The environment of one call to a machine.
///
/// The simulation runs calls one after the other, whereas threads of a real node write while the machine works. So
/// that this difference hides nothing, the order of steps within a call is checked: a page that was copied or
/// compared while it was writable must not lose that access later in the same call (a write in between would be
/// lost), and a page must not be overwritten while threads can see it.
pub struct SimEnv<'a> {
    /// The node.
    pub me: NodeId,
    /// Its memory.
    pub memory: &'a mut Memory,
    /// What the call does beyond the memory.
    pub effects: &'a mut Effects,
    /// The time of the call, or of the last look at the clock.
    pub(crate) now: Cell<Duration>,
    /// By how much the clock goes on with each look at it.
    pub(crate) tick: Duration,
    /// The memories that can be read one-sided.
    peers: Vec<(NodeId, &'a mut Memory)>,
    copied_writable: Vec<Page>,
}

impl<'a> SimEnv<'a> {
    /// The environment of one call of a machine on node `me`.
    pub fn new(me: NodeId, memory: &'a mut Memory, effects: &'a mut Effects) -> Self {
        Self {
            me,
            memory,
            effects,
            now: Cell::default(),
            tick: Duration::ZERO,
            peers: Vec::new(),
            copied_writable: Vec::new(),
        }
    }

    /// The same, among nodes whose memory can be read one-sided.
    pub fn beside(self, peers: Vec<(NodeId, &'a mut Memory)>) -> Self {
        Self { peers, ..self }
    }

    fn peer(&mut self, node: NodeId) -> Option<&mut Memory> {
        self.peers.iter_mut().find(|(number, _)| *number == node).map(|(_, memory)| &mut **memory)
    }

    /// The memories of all nodes.
    fn all(&mut self) -> impl Iterator<Item = &mut Memory> {
        self.peers.iter_mut().map(|(_, memory)| &mut **memory).chain(std::iter::once(&mut *self.memory))
    }

    fn patch_common(&mut self, page: Page, diff: &[u8]) {
        assert!(!diff.is_empty(), "page {} has not changed", page.0);
        for memory in self.all() {
            let frame = memory.shared.get_mut(&page).expect("it is common");
            for change in diff.chunks_exact(3) {
                frame[usize::from(u16::from_le_bytes([change[0], change[1]]))] = change[2];
            }
        }
    }

    fn note_copy(&mut self, page: Page) {
        if self.memory.access[page.0 as usize] == Access::Write {
            self.copied_writable.push(page);
        }
    }
}

impl Env for SimEnv<'_> {
    fn protect(&mut self, first: Page, count: u32, access: Access) {
        assert!(count > 0);
        for page in first.0..first.0 + count {
            assert!(
                access == Access::Write || !self.copied_writable.contains(&Page(page)),
                "page {page} was copied before its write access was taken"
            );
            self.memory.access[page as usize] = access;
        }
    }

    fn now(&self) -> Duration {
        self.now.set(self.now.get() + self.tick);
        self.now.get()
    }

    fn is_computing(&self) -> bool {
        true
    }

    fn make_twin(&mut self, page: Page) {
        assert_ne!(self.memory.access[page.0 as usize], Access::Write, "twin of a page in use");
        let copy = self.memory.frame(page).to_vec();
        let old = self.memory.twins[page.0 as usize].replace(copy);
        assert_eq!(old, None, "page {} has a twin", page.0);
    }

    fn copy_twin(&mut self, page: Page, out: &mut Vec<u8>) {
        out.extend(self.memory.twins[page.0 as usize].as_ref().expect("there is a twin"));
    }

    fn drop_twin(&mut self, page: Page) {
        assert!(self.memory.twins[page.0 as usize].take().is_some(), "page {} has no twin", page.0);
    }

    fn diff(&mut self, page: Page, out: &mut Vec<u8>) -> usize {
        self.note_copy(page);
        self.memory.diff(page, out)
    }

    fn is_observed(&self) -> bool {
        self.memory.observed
    }

    fn observe(&mut self, event: Event, first: Page, count: u32, peer: NodeId) {
        assert!(count > 0, "{event:?} of no page");
        self.effects.observed.push(Observed { event, first, count, peer });
    }

    fn is_written(&mut self, page: Page) -> bool {
        let twin = self.memory.twins[page.0 as usize].clone().expect("a comparison needs a twin");
        self.memory.frame(page) != twin
    }

    fn diff_and_keep(&mut self, page: Page, out: &mut Vec<u8>) -> usize {
        // What is written from now on differs from the twin, so that it is not lost with the write access.
        let bytes = self.memory.diff(page, out);
        self.renew_twin(page);
        bytes
    }

    fn renew_twin(&mut self, page: Page) -> bool {
        let written = self.is_written(page);
        self.memory.twins[page.0 as usize] = Some(self.memory.frame(page).to_vec());
        written
    }

    fn patch_with_twin(&mut self, page: Page, diff: &[u8]) {
        self.patch(page, diff);
        let twin = self.memory.twins[page.0 as usize].as_mut().expect("there is a twin");
        for change in diff.chunks_exact(3) {
            twin[usize::from(u16::from_le_bytes([change[0], change[1]]))] = change[2];
        }
    }

    fn diff_without(&mut self, _page: Page, diff: &[u8], later: &[u8], out: &mut Vec<u8>) {
        let is_later = |change: &&[u8]| later.chunks_exact(3).any(|later| later[..2] == change[..2]);
        diff.chunks_exact(3)
            .filter(|change| !is_later(change))
            .for_each(|change| out.extend_from_slice(change));
    }

    fn patch(&mut self, page: Page, diff: &[u8]) {
        if self.memory.common.contains(&page) {
            return self.patch_common(page, diff);
        }
        for change in diff.chunks_exact(3) {
            self.memory.frame(page)[usize::from(u16::from_le_bytes([change[0], change[1]]))] = change[2];
        }
    }

    fn merge(&mut self, page: Page, incoming: &[u8]) {
        let mut twin = self.memory.twins[page.0 as usize].take().expect("merging needs a twin");
        for (offset, (old, &new)) in twin.iter_mut().zip(incoming).enumerate() {
            if *old != new {
                *old = new;
                self.memory.frame(page)[offset] = new;
            }
        }
        self.memory.twins[page.0 as usize] = Some(twin);
    }

    fn install(&mut self, first: Page, incoming: &[u8], access: Access) {
        let size = self.memory.size;
        assert!(incoming.len().is_multiple_of(size) && !incoming.is_empty());
        for (page, contents) in (first.0..).map(Page).zip(incoming.chunks_exact(size)) {
            assert_eq!(self.memory.access[page.0 as usize], Access::None, "overwriting a page in use");
            assert!(!self.memory.has_twin(page), "overwriting unflushed writes");
            self.memory.frame(page).copy_from_slice(contents);
            self.memory.access[page.0 as usize] = access;
        }
    }

    fn clear(&mut self, first: Page, count: u32) {
        for page in first.0..first.0 + count {
            self.memory.frame(Page(page)).fill(0);
        }
    }

    fn send(&mut self, to: NodeId, message: Message<'_>, bulk: &[u8]) {
        assert_ne!(to, self.me, "a node sent {message:?} to itself");
        self.effects.sent.push((to, message.bytes.to_vec(), bulk.to_vec()));
    }

    fn send_pages(&mut self, to: NodeId, message: Message<'_>, first: Page, count: u32) {
        let mut bulk = Vec::new();
        for page in first.0..first.0 + count {
            self.note_copy(Page(page));
            bulk.extend_from_slice(self.memory.frame(Page(page)));
        }
        self.send(to, message, &bulk);
    }

    fn expose(&mut self, page: Page, exposure: Exposure) {
        let right = if exposure.writers == Writers::Noted { Access::Read } else { Access::Write };
        assert!(self.memory.access[page.0 as usize] >= right, "a page is open that is not here");
        let word = &mut self.memory.words[page.0 as usize];
        assert_eq!(*word, None, "names at an open word would be lost");
        *word = Some(Word { exposure, claims: Claims::default(), locked: false });
    }

    fn withdraw(&mut self, page: Page) -> Claims {
        let Some(word) = self.memory.words[page.0 as usize].take() else { return Claims::default() };
        assert!(!word.locked, "a new home has left page {} locked", page.0);
        word.claims
    }

    fn claim(&mut self, home: NodeId, first: Page, most: u32, claim: RemoteAccess) -> u32 {
        let me = self.me;
        let Some(memory) = self.peer(home) else { return 0 };
        let mut count = 0;
        for page in first.0..first.0 + most {
            let Some(Word { exposure, claims, locked }) = &mut memory.words[page as usize] else { break };
            let purpose = if claim == RemoteAccess::Upgrade { RemoteAccess::Home } else { claim };
            if claims.home.is_some()
                || (purpose != RemoteAccess::Read && exposure.to_writers != Some(purpose))
            {
                break;
            }
            if claim == RemoteAccess::Upgrade {
                let alone = claims.readers == NodeSet::only(me);
                if !alone || exposure.writers != Writers::Noted {
                    break;
                }
                *claims = Claims { home: Some(me), ..Claims::default() };
                count += 1;
                continue;
            }
            let quiet = exposure.writers == Writers::Compared
                && claim != RemoteAccess::Home
                && memory.logged.len() < ROOM;
            if quiet {
                memory.logged.insert(Page(page));
                claims.beside_writers = true;
            } else if claims.beside_writers {
                break;
            } else if std::mem::replace(&mut exposure.writers, Writers::Noted) != Writers::Noted {
                memory.access[page as usize] = Access::Read;
            }
            match claim {
                RemoteAccess::Home if claims.readers.is_empty() => {
                    claims.home = Some(me);
                    *locked = true;
                }
                RemoteAccess::Home | RemoteAccess::Upgrade => break,
                RemoteAccess::Read | RemoteAccess::Write => {
                    claims.readers.insert(me);
                }
            }
            count += 1;
        }
        count
    }

    fn copied_beside_writers(&mut self, pages: &mut Vec<Page>) {
        pages.extend(std::mem::take(&mut self.memory.logged));
    }

    fn is_current(&mut self, reader: NodeId, page: Page) -> bool {
        let own = self.memory.frame(page).to_vec();
        self.peer(reader).is_some_and(|memory| memory.frame(page) == own)
    }

    fn install_from(&mut self, home: NodeId, first: Page, count: u32, access: Access) {
        for page in (first.0..first.0 + count).map(Page) {
            let contents = self.peer(home).expect("copied before").frame(page).to_vec();
            self.install(page, &contents, access);
        }
    }

    fn complete_claim(&mut self, former: NodeId, first: Page, count: u32) {
        let memory = self.peer(former).expect("claimed before");
        for page in first.0..first.0 + count {
            let word = memory.words[page as usize].as_mut().expect("it is locked");
            assert!(std::mem::take(&mut word.locked), "page {page} is not locked");
        }
    }

    fn post_notice(&mut self, sharer: NodeId, page: Page, origin: NodeId) -> bool {
        let posted = self.peer(sharer).map(|memory| &mut memory.posted);
        posted.filter(|posted| posted.len() < ROOM).map(|posted| posted.push((page, origin))).is_some()
    }

    fn posted_notices(&mut self, notices: &mut Vec<(Page, NodeId)>) {
        notices.append(&mut self.memory.posted);
    }

    fn merge_from(&mut self, home: NodeId, page: Page) {
        let contents = self.peer(home).expect("copied before").frame(page).to_vec();
        self.merge(page, &contents);
    }

    fn can_be_common(&self, _page: Page) -> bool {
        !self.peers.is_empty()
    }

    fn make_common(&mut self, first: Page, count: u32) {
        for page in (first.0..first.0 + count).map(Page) {
            assert!(!self.memory.has_twin(page), "unflushed writes of page {}", page.0);
            let contents = self.memory.frame(page).to_vec();
            for memory in self.all() {
                assert_eq!(memory.shared.insert(page, contents.clone()), None, "page {} was common", page.0);
            }
            self.memory.access[page.0 as usize] = Access::None;
        }
        self.map_common(first, count);
    }

    fn map_common_with(&mut self, page: Page, diff: &[u8]) {
        assert!(!self.memory.has_twin(page), "unflushed writes of page {}", page.0);
        self.patch_common(page, diff);
        self.map_common(page, 1);
    }

    fn map_common(&mut self, first: Page, count: u32) {
        for page in (first.0..first.0 + count).map(Page) {
            let access = &mut self.memory.access[page.0 as usize];
            assert_eq!(std::mem::replace(access, Access::Write), Access::None, "a page in use");
            assert!(self.memory.shared.contains_key(&page), "page {} is not common", page.0);
            assert!(self.memory.common.insert(page), "page {} was common here", page.0);
        }
    }

    fn touch_common(&mut self, first: Page, count: u32, _from: Option<Page>) {
        for page in (first.0..first.0 + count).map(Page) {
            let size = self.memory.frame(page).len();
            for memory in self.all() {
                memory.shared.entry(page).or_insert_with(|| vec![0; size]);
            }
        }
        self.map_common(first, count);
    }

    fn resume(&mut self, waiter: Waiter) {
        match Continuation::of(waiter) {
            Some(continuation) => self.effects.continuations.push(continuation),
            None => self.effects.resumed.push(waiter),
        }
    }
}
