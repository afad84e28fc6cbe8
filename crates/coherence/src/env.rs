//! What a protocol machine is asked and what it asks of the node around it.

use crate::Message;
use crate::sync::Object;
use gondwana_page::{Access, RemoteAccess, Writers};
use gondwana_topology::{NodeId, NodeSet};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A page of the span, counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Page(pub u32);

impl Page {
    /// The page before it, unless it is the first one.
    pub(crate) fn before(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self)
    }
}

/// Names whatever waits for an operation to complete; meaningful only to the node that chose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiter(pub u64);

/// Whether an operation is complete, or will be announced with [`Env::resume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// Complete: the caller goes on.
    Done,
    /// Pending: the waiter given with the operation is resumed exactly once.
    Wait,
}

/// What a release is made for, or an acquire follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SyncPoint {
    /// The mutex, barrier or other object; `None` if there is none, as when a thread starts.
    pub object: Option<Object>,
    /// At a release: the only node that learns of it, from a message that this node sends when the release is complete. `None` if
    /// other nodes can learn of it, or by other ways. At an acquire: the node whose message this one follows from, if it is one.
    pub peer: Option<NodeId>,
    /// At a release: this node may acquire next without a message of the peer in between, as at a barrier to which it comes last.
    pub acquires_next: bool,
}

/// What happens to pages on this node, in terms that all protocols share.
///
/// What all nodes tell adds up page by page once nothing is under way: pages that one has `Served` have `Arrived` at its peer, or
/// it was `Answered`; each diff that one has sent has been received by its home, and by each former home that has passed it on;
/// who is told by a notice or an invalidation learns of it; and what `Left` because of a policy was `Given` to the peer. The test
/// `event_balance.rs` has the equations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// This node asks the peer for pages; the first of them is named.
    Asked,
    /// Pages that this node has asked for arrive, with so many bytes of contents in all; none if they are zero
    /// or common.
    Arrived {
        /// Bytes of all pages together.
        bytes: u64,
    },
    /// The answer about pages that this node has asked for brings nothing, because they are here, or because this node is the one
    /// to be asked for them by now.
    Answered,
    /// The peer makes this node the home of pages for which it has not asked.
    Given {
        /// Bytes of all pages together.
        bytes: u64,
    },
    /// Pages leave for the peer, which has asked for them.
    Served {
        /// It will write them.
        write: bool,
    },
    /// This node sends diffs of pages that it has written to the peer.
    DiffSent {
        /// Bytes of each of them.
        bytes: u32,
    },
    /// Diffs that the peer has made come here, perhaps only to be passed on.
    DiffReceived {
        /// Bytes of each of them.
        bytes: u32,
    },
    /// The peer is told that pages have changed.
    NoticeSent,
    /// This node learns that the peer has changed pages, which need not be the node that tells it.
    NoticeReceived,
    /// The peer, which has a copy, is told what has changed on a page.
    UpdateSent {
        /// Bytes of the diff.
        bytes: u32,
    },
    /// This node, which has a copy, is told by the peer what has changed on a page.
    UpdateReceived {
        /// Bytes of the diff.
        bytes: u32,
    },
    /// The peer is told to give up its copies.
    InvalidationSent,
    /// A thread writes pages that this node had for reading, or is expected to; the peer is their home or former owner, this
    /// node itself if it is that.
    Upgraded,
    /// Copies are given up because another node has written, or is about to. The peer is the writer where this node has been told
    /// which it is, else the home or owner of the pages as far as this node knows. Under `sc`, what an owner has for reading
    /// is a copy, too.
    Invalidated,
    /// Pages that have come from the peer may lack writes and are asked for again.
    Overtaken,
    /// Pages that this node had for itself alone are the peer's to read, too.
    Shared,
    /// Pages went to the peer for good. No copy stays, unless the peer has come for them by itself.
    Left {
        /// Until now no other node had them.
        exclusive: bool,
        /// The peer writes them; else a policy wants them there.
        written: bool,
    },
}

/// What the home of a page lets other nodes do without asking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exposure {
    /// What the home's threads do with the page.
    pub writers: Writers,
    /// What nodes that will write the page may claim; otherwise they send a message, because the home might move to them.
    pub to_writers: Option<RemoteAccess>,
}

/// Which nodes have claimed a page while it was exposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Claims {
    /// The nodes that have copied it.
    pub readers: NodeSet,
    /// The node that has become its home; then there is no other claim.
    pub home: Option<NodeId>,
    /// The page has been copied while this node's threads were writing it without noting that, and they still may. Otherwise
    /// they may only read a page that another node has claimed, unless they note what they write.
    pub beside_writers: bool,
}

/// The node as a machine sees it: memory, network and threads.
///
/// A machine works on whole pages through the node's own view, which never faults; `protect` changes what the
/// *program's* view allows, and has taken effect on every processor of the node when it returns.
pub trait Env {
    /// Sets what the program may do with `count` pages from `first`. A page never touched before reads as zero.
    fn protect(&mut self, first: Page, count: u32, access: Access);
    /// Keeps a pristine copy of the page (its *twin*). The page has no twin yet.
    fn make_twin(&mut self, page: Page);
    /// Appends the contents of the page's twin to `out`.
    fn copy_twin(&mut self, page: Page, out: &mut Vec<u8>);
    /// Forgets the page's twin.
    fn drop_twin(&mut self, page: Page);
    /// Appends to `out` the bytes in which the page differs from its twin; returns how many bytes differ
    /// (0: nothing was appended).
    fn diff(&mut self, page: Page, out: &mut Vec<u8>) -> usize;
    /// True if the page differs from its twin now. Threads may be writing it.
    fn is_written(&mut self, page: Page) -> bool;
    /// [`Env::diff`] of a page that threads go on writing, which also makes the twin what the diff says: a byte that changes
    /// meanwhile is in the diff and in the twin, or in neither (Cashmere's *flush-update*).
    fn diff_and_keep(&mut self, page: Page, out: &mut Vec<u8>) -> usize;
    /// Makes the page's twin like the page, which threads go on writing; true if they differed. A byte that changes meanwhile
    /// counts and is in the twin, or neither.
    fn renew_twin(&mut self, page: Page) -> bool;
    /// Writes the bytes of a diff into the page and nothing else, while local threads may write other bytes.
    fn patch(&mut self, page: Page, diff: &[u8]);
    /// As [`Env::patch`], and the same for the page's twin.
    fn patch_with_twin(&mut self, page: Page, diff: &[u8]);
    /// Appends to `out` what is in `diff`, of bytes that the diff `later` does not have; nothing if it has them all. `page` is the page of
    /// both.
    fn diff_without(&mut self, page: Page, diff: &[u8], later: &[u8], out: &mut Vec<u8>);
    /// Two-way diffing (Cashmere, section 2.1): where `incoming` differs from the twin, both page and twin take
    /// the incoming byte; bytes that only local threads changed stay. Local threads may write other bytes meanwhile.
    fn merge(&mut self, page: Page, incoming: &[u8]);
    /// Overwrites whole pages from `first` on with `incoming`, whose length is a multiple of the page size. The program cannot
    /// reach them, and is about to be allowed `access`; it may be so already when this returns.
    fn install(&mut self, first: Page, incoming: &[u8], access: Access);
    /// Fills pages with zeros.
    fn clear(&mut self, first: Page, count: u32);
    /// Sends a message. Messages from one node to another arrive in the order sent. `to` is never this node.
    fn send(&mut self, to: NodeId, message: Message<'_>, bulk: &[u8]);
    /// Sends a message whose bulk is the present contents of `count` pages from `first`.
    fn send_pages(&mut self, to: NodeId, message: Message<'_>, first: Page, count: u32);
    /// True if a thread of this node runs on the page, perhaps where it cannot take a fault: its write access is taken only if
    /// somebody else needs the page.
    fn is_stack(&self, _page: Page) -> bool {
        false
    }
    /// Lets other nodes of this computer copy a page whose home this node is without asking it, until [`Env::withdraw`].
    fn expose(&mut self, _page: Page, _exposure: Exposure) {}
    /// Ends that; returns which nodes have claimed the page since it was exposed.
    fn withdraw(&mut self, _page: Page) -> Claims {
        Claims::default()
    }
    /// Claims up to `most` pages from `first` that `home` exposes for this claim; returns the count. What the home has
    /// released is in its frames. Pages that its threads go on writing without noting it are named there by
    /// [`Env::copied_beside_writers`] before its next release. The former home waits for pages claimed as
    /// [`RemoteAccess::Home`] until [`Env::complete_claim`].
    fn claim(&mut self, _home: NodeId, _first: Page, _most: u32, _claim: RemoteAccess) -> u32 {
        0
    }
    /// Appends the exposed pages that were copied beside writers since the last call, and perhaps others. A node that copies one
    /// later has what this node's threads have written so far.
    fn copied_beside_writers(&mut self, _pages: &mut Vec<Page>) {}
    /// True if the frame of another node, which has copied the page one-sided or is just doing so, equals
    /// the page.
    fn is_current(&mut self, _reader: NodeId, _page: Page) -> bool {
        false
    }
    /// [`Env::install`] of the present contents of another node's frames, which this node has copied one-sided.
    fn install_from(&mut self, _home: NodeId, _first: Page, _count: u32, _access: Access) {}
    /// The pages claimed as [`RemoteAccess::Home`] have been copied: the former home may let its threads use its copies.
    fn complete_claim(&mut self, _former: NodeId, _first: Page, _count: u32) {}
    /// [`Env::merge`] of the present contents of another node's frame, which this node has copied one-sided.
    fn merge_from(&mut self, _home: NodeId, _page: Page) {}
    /// Leaves a notice where `sharer` finds it ([`Env::posted_notices`]) at any acquire after a release that ends later than this:
    /// node `origin` has written the page. False if a message has to be sent.
    fn post_notice(&mut self, _sharer: NodeId, _page: Page, _origin: NodeId) -> bool {
        false
    }
    /// Appends the notices that other nodes have posted to this one since the last call, each with the node that wrote the page.
    fn posted_notices(&mut self, _notices: &mut Vec<(Page, NodeId)>) {}
    /// True if the page, which is here or which nobody has touched, may become common.
    fn can_be_common(&self, _page: Page) -> bool {
        false
    }
    /// Moves pages to memory that all nodes have in common, where the hardware keeps them coherent. From now on threads of this node use
    /// them there, and [`Env::patch`] works on them there.
    fn make_common(&mut self, _first: Page, _count: u32) {}
    /// From now on threads of this node use pages there that another node has moved. They can access nothing of them now.
    fn map_common(&mut self, _first: Page, _count: u32) {}
    /// From now on threads of this node use pages there that nobody has touched, so that they are zero. They have come
    /// `from` that page, if any, and will touch all of these if somebody has touched that.
    fn touch_common(&mut self, _first: Page, _count: u32, _from: Option<Page>) {}
    /// [`Env::map_common`] of a page to which a diff that is not empty is applied before.
    fn map_common_with(&mut self, _page: Page, _diff: &[u8]) {}
    /// The time since some moment.
    fn now(&self) -> Duration;
    /// A thread of this node runs, or will soon: it waits for nothing but a page, or not for long yet.
    fn is_computing(&self) -> bool;
    /// The operation begun with this waiter is complete.
    fn resume(&mut self, waiter: Waiter);
    /// True if a monitor wants to know what threads access.
    fn is_observed(&self) -> bool {
        false
    }
    /// Tells the monitor that something happens to `count` pages from `first`.
    fn observe(&mut self, _event: Event, _first: Page, _count: u32, _peer: NodeId) {}
}

/// What a node is to the home of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HomeRole {
    /// The home is another node.
    Elsewhere,
    /// This node answers for the page; nobody has touched it, so that it is nowhere yet.
    Untouched,
    /// As [`HomeRole::Untouched`], but a policy has decided which node will be the home.
    Placed(NodeId),
    /// This node is the home.
    Home,
}

/// How many pages of which a node is in charge were placed ([`Protocol::place`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlacedPages {
    /// Their home is this node.
    pub home: u64,
    /// Nobody has touched them.
    pub untouched: u64,
}

/// Most kinds of messages that a protocol can have.
pub const MOST_KINDS: usize = 16;

/// A coherence protocol on one node.
///
/// The node calls these one at a time (under one lock).
pub trait Protocol: Send {
    /// Says that `count` pages from `first`, which this node manages, have contents before the program starts, with
    /// write access already in force. Where pages are common as soon as they are touched, the contents are in common memory already. To be
    /// called before anything else happens to these pages.
    ///
    /// # Panics
    /// If a page is not managed here or was touched before.
    fn adopt(&mut self, first: Page, count: u32);
    /// A thread touched `page` in a way that its protection forbids. When the operation is complete the thread
    /// repeats the access (and may fault again). `ahead` is how many pages after `page` the thread will probably
    /// touch next in the same way: the machine brings them along where that is cheap.
    fn fault(&mut self, page: Page, access: Access, ahead: u32, waiter: Waiter, env: &mut dyn Env)
    -> Outcome;
    /// A thread will probably touch `count` pages from `first` on before long: the machine may bring them, while nobody
    /// waits. Pages outside the span are no error.
    fn prefetch(&mut self, _first: Page, _count: u32, _access: Access, _env: &mut dyn Env) {}
    /// As [`Protocol::prefetch`] of pages that are here and will probably be written: the machine may allow that where it costs
    /// nobody anything.
    fn write_early(&mut self, _first: Page, _count: u32, _env: &mut dyn Env) {}
    /// Keeps other nodes from copying a page of this home by themselves, and finds out whether they have, which may have
    /// changed what its threads may do with it. Until [`Protocol::expose_withdrawn`].
    fn withdraw_page(&mut self, _page: Page, _env: &mut dyn Env) {}
    /// Ends [`Protocol::withdraw_page`].
    fn expose_withdrawn(&mut self, _env: &mut dyn Env) {}
    /// A thread is about to execute an atomic instruction on the page, or to wait for what others write there. When the operation is
    /// complete, what it does there orders its other accesses as C11 has it.
    fn promote(&mut self, _page: Page, _waiter: Waiter, _env: &mut dyn Env) -> Outcome {
        Outcome::Done
    }
    /// True while a page that was asked for is on its way to this node.
    fn is_coming(&self, _page: Page) -> bool {
        false
    }
    /// Everything that threads of this node wrote so far becomes visible to every thread that acquires later. If only one peer
    /// can learn of the release ([`SyncPoint::peer`]), what is on its way to that peer need not have arrived: the message by which
    /// it learns comes behind.
    fn release(&mut self, at: SyncPoint, waiter: Waiter, env: &mut dyn Env) -> Outcome;
    /// True if a release would have nothing to do, but for pages that [`Env::copied_beside_writers`] would name.
    fn is_released(&self) -> bool {
        false
    }
    /// True if an acquire would have nothing to do, but for notices that [`Env::posted_notices`] would append.
    fn is_acquired(&self) -> bool {
        false
    }
    /// Everything that others released before becomes visible to the threads of this node.
    fn acquire(&mut self, at: SyncPoint, env: &mut dyn Env);
    /// Appends to `payload` what a message of synchronisation to `to` is to carry for this protocol. The message tells of a
    /// release of this node that is complete, and is about to leave.
    fn publish(&mut self, _to: NodeId, _payload: &mut Vec<u8>, _env: &mut dyn Env) {}
    /// What [`Protocol::publish`] has appended at `from` arrived, before anything else that comes of the message. An error is as
    /// for [`Protocol::message`].
    fn learn(&mut self, _from: NodeId, _payload: &[u8], _env: &mut dyn Env) -> Result<(), crate::Violation> {
        Err(crate::Violation::Unintelligible)
    }
    /// The names of the kinds of its messages, under which they are counted; at most [`MOST_KINDS`].
    fn kinds(&self) -> &'static [&'static str];
    /// A message arrived that the same protocol has sent on another node. An error means that the peer broke the protocol:
    /// the run must end.
    fn message(
        &mut self,
        from: NodeId,
        message: &[u8],
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), crate::Violation>;
    /// True if another node waits for a page that this node keeps until [`Protocol::settle`].
    fn is_wanted(&self) -> bool {
        false
    }
    /// Another number than before if one more request has been put off until [`Protocol::settle`].
    fn put_off(&self) -> u64 {
        self.is_wanted().into()
    }
    /// A thread that waited for a page after a fault goes on, and repeats its access at once.
    fn repeats(&mut self, _page: Page, _env: &mut dyn Env) {}
    /// Lets go of pages that other nodes wait for and that need not stay any longer. Returns in what time to do so again; `None`
    /// if nobody waits. An error is as for [`Protocol::message`].
    fn settle(&mut self, _env: &mut dyn Env) -> Result<Option<Duration>, crate::Violation> {
        Ok(None)
    }
    /// Releases and acquires if threads of this node have not done so since the last call, so that what other threads do is seen in
    /// the end by who waits for it by plain loads. Returns in what time to do so again; `None`: never.
    fn catch_up(&mut self, _env: &mut dyn Env) -> Option<Duration> {
        None
    }
    /// The slices of time in which this node keeps pages that other nodes fight for, if the protocol has any.
    fn slices(&mut self) -> Option<&mut crate::Slices> {
        None
    }
    /// The home of `count` pages from `first` is to be `home`, and to stay there; with `None` it may be anywhere again.
    /// Takes effect at once for pages that no thread has touched, and for those that only this node has used if
    /// `used` is false, which promises that nobody uses them now either. Others follow as the protocol's
    /// [`PlacedHomes`](crate::PlacedHomes) says.
    fn place(&mut self, first: Page, count: u32, home: Option<NodeId>, used: bool, env: &mut dyn Env);
    /// Makes those nodes home that [`Protocol::place`] has decided on, of pages that nobody has touched and that this node
    /// answers for: when they are touched there, nobody need be asked.
    fn give_placed(&mut self, first: Page, count: u32, env: &mut dyn Env);
    /// Threads of other nodes are about to use what so far only this node has used. Makes it cheaper for them to come for
    /// it, and a little dearer for this node to go on writing it.
    fn downgrade_exclusive(&mut self, _env: &mut dyn Env) {}
    /// What this node is to the home of a page, as far as it knows: a former home is told when it next keeps others out of
    /// the page. But for that, at any time at most one node says [`HomeRole::Home`]; while the home
    /// moves, none does.
    fn home_role(&self, page: Page) -> HomeRole;
    /// Counts what was placed. Takes time in proportion to the memory in use.
    fn placed(&self) -> PlacedPages;
    /// What happened so far.
    fn counters(&self) -> crate::Counters;
}
