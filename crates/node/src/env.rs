//! What the protocol machines act on: this node's pages, the fabric and the waiting threads.

use crate::monitor::EventSink;
use crate::stats::MessageCounts;
use crate::sync::CommonMutexes;
use crate::wait_slots::{Sleepers, WaitSlot, WaitSlots, event};
use crate::wire::{Wire, sync_kind_of};
use crate::{Node, Thread};
use gondwana_coherence::sync::{
    Answer, KeeperMessage, LockGrant, LockMessage, Object, Request, SyncMessage, Ticket,
};
use gondwana_coherence::{
    Access, Claims, Continuation, EngineEnv, Env, Event, Exposure, Message, Page, RemoteAccess, Waiter,
};
use gondwana_control::Offer as HandedOver;
use gondwana_control::Report;
use gondwana_fabric::{Fabric, SendError};
use gondwana_memory::diff::{self, Malformed};
use gondwana_memory::{MemoryError, PAGE_SIZE, PageBytes, Pages, Peer, RemoteMemory};
use gondwana_racing::RacingBytes;
use gondwana_topology::{NodeId, NodeSet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The waiter of a thread that waits in a slot.
pub(crate) fn waiter_of(slot: WaitSlot) -> Waiter {
    Waiter(slot.0.into())
}

/// The slot of a waiter that is a thread's.
fn slot_of(waiter: Waiter) -> WaitSlot {
    WaitSlot(u32::try_from(waiter.0).expect("threads wait in slots"))
}

/// The node's side of the machines.
pub(crate) struct NodeEnv {
    pub pages: Pages,
    pub fabric: Arc<dyn Fabric>,
    pub slots: Arc<WaitSlots>,
    /// Continuations of the engine that may go on.
    ready: Vec<Continuation>,
    pub messages: MessageCounts,
    /// The nodes whose memory can be read one-sided, by number.
    remotes: Vec<Option<Box<dyn RemoteMemory>>>,
    /// The readers of exposed pages that the observer has been told of before the protocol withdraws them.
    told: BTreeMap<u32, NodeSet>,
    /// Where threads of this node have their stacks.
    pub stacks: Vec<Range<u32>>,
    /// Who observes the node, if it is monitored.
    pub sink: Option<Box<EventSink>>,
    /// When the node began.
    pub began: Instant,
    /// For heads that are not short.
    head: Vec<u8>,
    wakes: Wakes,
}

/// Room for the heads of all messages but those with lists.
const SHORT: usize = 64;

/// The head of a message: in `short` if it fits, which is several times as fast, otherwise in `long`.
fn encode<'a>(wire: &impl Serialize, short: &'a mut [u8; SHORT], long: &'a mut Vec<u8>) -> &'a [u8] {
    if let Ok(head) = postcard::to_slice(wire, short) {
        return head;
    }
    long.clear();
    *long = postcard::to_extend(wire, std::mem::take(long)).expect("messages can be encoded");
    long
}

impl NodeEnv {
    pub(crate) fn new(pages: Pages, fabric: Arc<dyn Fabric>, slots: Arc<WaitSlots>) -> Self {
        let messages = MessageCounts::default();
        let (ready, remotes, told, head) = (vec![], vec![], BTreeMap::new(), vec![]);
        Self {
            pages,
            fabric,
            slots,
            ready,
            messages,
            remotes,
            told,
            stacks: vec![],
            sink: None,
            began: Instant::now(),
            head,
            wakes: Wakes::NONE,
        }
    }

    /// Whom to wake for what has been sent and announced since the last call.
    pub(crate) fn take_wakes(&mut self) -> Wakes {
        std::mem::replace(&mut self.wakes, Wakes::NONE)
    }

    fn announce(&mut self, slot: WaitSlot, events: u32, result: i64) {
        self.slots.announce_first(slot, events, result, &mut self.wakes.sleepers);
    }

    /// Maps the memory of same-host peers from what each has handed over. A node whose memory is not mapped gets messages.
    pub(crate) fn meet_peers(&mut self, handed: Vec<(u16, HandedOver)>) {
        self.remotes.resize_with(self.fabric.nodes(), || None);
        let nodes = u16::try_from(self.remotes.len()).expect("numbers of nodes have 16 bits");
        for (node, exposure) in handed {
            if let Some(place) = self.remotes.get_mut(usize::from(node)) {
                let peer = Peer::new(node, nodes, exposure, self.pages.geometry());
                *place = peer.ok().map(|peer| Box::new(peer) as Box<dyn RemoteMemory>);
            }
        }
    }

    /// Tells the observer of readers of these pages that the protocol has not found yet, each of them once.
    pub(crate) fn report_one_sided_reads(&mut self, pages: Range<u32>) {
        let Self { pages: memory, told, sink, .. } = self;
        memory.readers(pages, |page, readers| {
            let new = readers.difference(&told.insert(page, readers).unwrap_or_default());
            if let Some(sink) = sink {
                new.iter().for_each(|reader| sink.copied(Page(page), reader));
            }
        });
    }

    /// The memory of a node that can be read one-sided.
    fn remote(&self, node: NodeId) -> Option<&dyn RemoteMemory> {
        self.remotes.get(node.index())?.as_deref()
    }

    /// Sends anything to another node. A peer that is lost is noticed by the service thread, which ends the run.
    pub(crate) fn post(&mut self, to: NodeId, wire: &Wire, bulk: &[u8]) {
        let mut short = [0; SHORT];
        let head = encode(wire, &mut short, &mut self.head);
        self.messages.count(wire.kind(), head.len() + bulk.len());
        publish(self.fabric.as_ref(), &mut self.wakes, to, head, bulk.into());
    }
}

/// Whom to wake when the lock on the machines has been given back: who is woken earlier may take the processor of the thread that has
/// the lock, and then needs the lock.
#[derive(Clone, Copy)]
pub(crate) struct Wakes {
    peers: NodeSet,
    sleepers: Sleepers,
}

impl Wakes {
    const NONE: Self = Self { peers: NodeSet::EMPTY, sleepers: Sleepers::NONE };

    /// Wakes them.
    pub(crate) fn wake(&self, fabric: &dyn Fabric, slots: &WaitSlots) {
        slots.wake(&self.sleepers);
        self.peers.iter().for_each(|peer| fabric.ring(peer));
    }
}

/// Sends a message whose receiver is woken later.
fn publish(fabric: &dyn Fabric, wakes: &mut Wakes, to: NodeId, head: &[u8], bulk: RacingBytes<'_>) {
    accept(to, fabric.publish(to, head, &[bulk]));
    wakes.peers.insert(to);
}

/// A peer that is lost is no error here: the service thread tells the launcher, which ends the run.
fn accept(to: NodeId, sent: Result<(), SendError>) {
    match sent {
        Ok(()) | Err(SendError::Lost(_)) => {}
        Err(error) => crate::fatal(&format!("node {to}: {error}")),
    }
}

/// The launcher is told that another node holds a page which this one wants. Not waited for: whoever tells it may be what
/// others wait for.
fn report_held_up(by: u16) {
    if let Some(node) = Node::current() {
        node.report_now(&Report::HeldUp { by });
    }
}

/// A malformed diff ends the run: its origin broke the protocol.
fn must_be_diff<T>(page: Page, used: Result<T, Malformed>) {
    if let Err(error) = used {
        crate::fatal(&format!("a diff of page {} is malformed: {error}", page.0));
    }
}

/// A page that could not be moved to the common memory is nowhere: the run ends.
fn must_move(moved: Result<(), MemoryError>) {
    if let Err(error) = moved {
        crate::fatal(&format!("common pages: {error}"));
    }
}

/// The common mutexes of the node that the calling thread belongs to, if any may be.
fn common_mutexes() -> Option<&'static CommonMutexes> {
    Node::current()?.sync.common_mutexes.as_ref()
}

impl Env for NodeEnv {
    fn protect(&mut self, first: Page, count: u32, access: Access) {
        if let Err(error) = self.pages.protect(first.0, count, access) {
            crate::fatal(&format!("pages {} to {}: {error}", first.0, first.0 + count - 1));
        }
    }

    fn make_twin(&mut self, page: Page) {
        self.pages.make_twin(page.0);
    }

    fn copy_twin(&mut self, page: Page, out: &mut Vec<u8>) {
        out.extend_from_slice(self.pages.twin(page.0));
    }

    fn drop_twin(&mut self, page: Page) {
        self.pages.drop_twin(page.0);
    }

    fn diff(&mut self, page: Page, out: &mut Vec<u8>) -> usize {
        let begin = out.len();
        let bytes = self.pages.diff(page.0, out);
        if let Some(sink) = self.sink.as_ref().filter(|_| bytes > 0) {
            sink.wrote(page, &out[begin..]);
        }
        bytes
    }

    fn is_written(&mut self, page: Page) -> bool {
        // The monitor learns which bytes it is.
        if self.is_observed() { self.diff(page, &mut Vec::new()) > 0 } else { self.pages.is_written(page.0) }
    }

    fn diff_and_keep(&mut self, page: Page, out: &mut Vec<u8>) -> usize {
        let begin = out.len();
        let bytes = self.pages.diff_and_keep(page.0, out);
        if let Some(sink) = self.sink.as_ref().filter(|_| bytes > 0) {
            sink.wrote(page, &out[begin..]);
        }
        bytes
    }

    fn renew_twin(&mut self, page: Page) -> bool {
        // As above.
        if self.is_observed() {
            self.diff_and_keep(page, &mut Vec::new()) > 0
        } else {
            self.pages.renew_twin(page.0)
        }
    }

    fn patch(&mut self, page: Page, diff: &[u8]) {
        let patched = self.pages.patch(page.0, diff);
        must_be_diff(page, patched);
    }

    fn patch_with_twin(&mut self, page: Page, diff: &[u8]) {
        let patched = self.pages.patch_with_twin(page.0, diff);
        must_be_diff(page, patched);
    }

    fn diff_without(&mut self, page: Page, diff: &[u8], later: &[u8], out: &mut Vec<u8>) {
        must_be_diff(page, diff::encode_rest(diff, later, out));
    }

    fn merge(&mut self, page: Page, incoming: &[u8]) {
        let incoming: &PageBytes = incoming.try_into().expect("one page");
        self.pages.merge(page.0, incoming);
    }

    fn install(&mut self, first: Page, incoming: &[u8], access: Access) {
        self.pages.install(first.0, incoming, access);
    }

    fn clear(&mut self, first: Page, count: u32) {
        self.pages.clear(first.0, count);
    }

    fn send(&mut self, to: NodeId, Message { kind, bytes }: Message<'_>, bulk: &[u8]) {
        self.messages.count_coherence(kind, bytes.len() + bulk.len());
        publish(self.fabric.as_ref(), &mut self.wakes, to, bytes, bulk.into());
    }

    fn send_pages(&mut self, to: NodeId, message: Message<'_>, first: Page, count: u32) {
        let Message { kind, bytes } = message;
        self.messages.count_coherence(kind, bytes.len() + count as usize * PAGE_SIZE);
        let contents = self.pages.contents(first.0, count);
        publish(self.fabric.as_ref(), &mut self.wakes, to, bytes, contents);
    }

    fn is_stack(&self, page: Page) -> bool {
        self.stacks.iter().any(|stack| stack.contains(&page.0))
    }

    fn expose(&mut self, page: Page, exposure: Exposure) {
        self.pages.expose(page.0, exposure.writers, exposure.to_writers);
    }

    fn withdraw(&mut self, page: Page) -> Claims {
        let found = self.pages.withdraw(page.0, report_held_up);
        let home = found.home.map(NodeId);
        let came = found.readers.union(&home.into_iter().collect());
        if came.is_empty() {
            return Claims::default();
        }
        let told = self.told.remove(&page.0).unwrap_or_default();
        if let Some(sink) = &self.sink {
            came.difference(&told).iter().for_each(|reader| sink.copied(page, reader));
        }
        Claims { readers: found.readers, home, beside_writers: found.beside_writers }
    }

    fn copied_beside_writers(&mut self, pages: &mut Vec<Page>) {
        self.pages.logged_reads(|page| pages.push(Page(page)));
    }

    fn is_current(&mut self, reader: NodeId, page: Page) -> bool {
        self.remote(reader).is_some_and(|remote| self.pages.is_same(remote, page.0))
    }

    fn claim(&mut self, home: NodeId, first: Page, most: u32, claim: RemoteAccess) -> u32 {
        let me = self.fabric.node().0;
        let count =
            self.remote(home).map_or(0, |remote| gondwana_memory::claim(remote, me, first.0, most, claim));
        // Of pages that are here nothing is fetched.
        if let Some(sink) = self.sink.as_mut().filter(|_| count > 0 && claim != RemoteAccess::Upgrade) {
            sink.fetches(home, first, count);
        }
        count
    }

    fn install_from(&mut self, home: NodeId, first: Page, count: u32, access: Access) {
        let remote = self.remotes[home.index()].as_deref().expect("claimed before");
        self.pages.install_from(remote, first.0, count, access);
    }

    fn complete_claim(&mut self, former: NodeId, first: Page, count: u32) {
        let remote = self.remotes[former.index()].as_deref().expect("claimed before");
        gondwana_memory::complete_claim(remote, first.0, count);
    }

    fn post_notice(&mut self, sharer: NodeId, page: Page, origin: NodeId) -> bool {
        let me = self.fabric.node().0;
        self.remote(sharer).is_some_and(|sharer| gondwana_memory::post_notice(sharer, me, origin.0, page.0))
    }

    fn posted_notices(&mut self, notices: &mut Vec<(Page, NodeId)>) {
        self.pages.posted_notices(|origin, page| notices.push((Page(page), NodeId(origin))));
    }

    fn merge_from(&mut self, home: NodeId, page: Page) {
        let remote = self.remotes[home.index()].as_deref().expect("claimed before");
        self.pages.merge_from(remote, page.0);
    }

    fn resume(&mut self, waiter: Waiter) {
        if let Some(continuation) = Continuation::of(waiter) {
            return self.ready.push(continuation);
        }
        let slot = slot_of(waiter);
        if let Some(sink) = &mut self.sink {
            sink.resumed(slot);
        }
        self.announce(slot, event::COHERENT, 0);
    }

    fn can_be_common(&self, page: Page) -> bool {
        // A monitor that has come while the program ran sees what crosses.
        self.sink.is_none() && self.pages.can_be_common(page.0)
    }

    fn make_common(&mut self, first: Page, count: u32) {
        must_move(self.pages.make_common(first.0, count));
    }

    fn map_common(&mut self, first: Page, count: u32) {
        must_move(self.pages.map_common(first.0, count));
    }

    fn touch_common(&mut self, first: Page, count: u32, from: Option<Page>) {
        must_move(self.pages.touch_common(first.0, count, from.map(|page| page.0)));
    }

    fn map_common_with(&mut self, page: Page, diff: &[u8]) {
        must_be_diff(page, self.pages.patch_common(page.0, diff));
        must_move(self.pages.map_common(page.0, 1));
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn is_computing(&self) -> bool {
        Node::current().is_some_and(|node| node.threads.any_computes())
    }

    fn is_observed(&self) -> bool {
        self.sink.is_some()
    }

    fn observe(&mut self, event: Event, first: Page, count: u32, peer: NodeId) {
        if let Some(sink) = &mut self.sink {
            sink.observes(event, first, count, peer, Thread::acting_number);
        }
    }
}

impl EngineEnv for NodeEnv {
    /// A thread of the program that receives messages waits itself.
    fn is_active(&self) -> bool {
        Thread::is_service() && Node::current().is_some_and(|node| node.threads.any_runs())
    }

    fn can_mutexes_be_common(&self) -> bool {
        // As for pages.
        self.sink.is_none() && common_mutexes().is_some()
    }

    fn make_mutex_common(&mut self, object: Object) -> bool {
        common_mutexes().is_some_and(|mutexes| mutexes.place(object).is_some())
    }

    fn is_mutex_common(&mut self, object: Object) -> bool {
        common_mutexes().is_some_and(|mutexes| mutexes.get(object).is_some())
    }

    fn next_continuation(&mut self) -> Option<Continuation> {
        self.ready.pop()
    }

    fn send_sync(&mut self, to: NodeId, message: SyncMessage, payload: &[u8]) {
        if let (Some(sink), SyncMessage::Lock(LockMessage::Token { object, .. })) = (&self.sink, message) {
            sink.passes_lock(to, object.0);
        }
        self.messages.count(sync_kind_of(message), SyncMessage::BYTES + payload.len());
        publish(self.fabric.as_ref(), &mut self.wakes, to, &message.to_bytes(), payload.into());
    }

    fn leave_sync(&mut self, to: NodeId, message: SyncMessage, payload: &[u8]) {
        if !payload.is_empty() {
            return self.send_sync(to, message, payload);
        }
        self.messages.count(sync_kind_of(message), SyncMessage::BYTES);
        accept(to, self.fabric.leave(to, &message.to_bytes()));
    }

    fn send_request(&mut self, to: NodeId, ticket: Ticket, request: Request, payload: &[u8]) {
        self.post(to, &Wire::Request { ticket, request }, payload);
    }

    fn send_answer(&mut self, to: NodeId, ticket: Ticket, answer: Answer, payload: &[u8]) {
        self.post(to, &Wire::Reply { ticket, answer }, payload);
    }

    fn send_keeper(&mut self, to: NodeId, message: KeeperMessage, payload: &[u8]) {
        self.post(to, &Wire::Keeper(message), payload);
    }

    fn answered(&mut self, ticket: Ticket, answer: Answer) {
        let (events, result) = match answer {
            Answer::Enqueued => (event::QUEUED, 0),
            Answer::Done(value) => (event::DONE, value),
            Answer::Failed(error) => (event::FAILED, i64::from(error.code())),
            Answer::Cancelled => (event::CANCELLED, 0),
        };
        self.announce(slot_of(Waiter(ticket.0 & u64::from(u32::MAX))), events, result);
    }

    fn granted(&mut self, waiter: Waiter, grant: LockGrant) {
        let slot = slot_of(waiter);
        let events = match grant {
            LockGrant::Acquired => event::GRANTED,
            LockGrant::Busy => event::BUSY,
            LockGrant::Common => event::COMMON,
        };
        if let Some(sink) = &mut self.sink {
            sink.grants_lock(self.slots.thread(slot));
        }
        self.announce(slot, events, 0);
    }

    fn passed(&mut self, waiter: Waiter, serial: bool) {
        self.announce(slot_of(waiter), event::PASSED, serial.into());
    }
}
