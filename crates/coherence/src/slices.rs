//! Slices of time in which a node keeps what several nodes fight for: the tokens of mutexes, and under `sc` pages with them.
//!
//! Nodes that use the same things at random would fetch one for nearly each use. So a node that fetches things that it lost only
//! just before has them for itself for a *slice* of time, in proportion to the time for which its threads waited for them: the other
//! nodes wait meanwhile, and fetch them all once instead of again and again. A node makes others wait [`SliceRules::share`] times
//! as long as it waited itself, at most, so that a program in which nobody uses what is kept is slower by no more than that.
//!
//! Nodes take turns: slices are numbered, a request has the number of its node's present or next slice, and a slice keeps things
//! only from requests with later numbers, and with the same number from those of nodes with higher ones (the *wound-wait* rule of
//! databases). So two nodes that each want what the other one has do not wait for each other.

use gondwana_page::to_usize;
use gondwana_topology::NodeId;
use std::time::Duration;

/// What may be tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SliceRules {
    /// A slice is so many times as long as the threads' waits for what came back in it.
    pub share: u32,
    /// The shortest slice. Where the clock stands still, slices last if this is not zero, and there are none if it is.
    pub shortest: Duration,
    /// The longest slice.
    pub longest: Duration,
    /// What comes back within this time after it was lost is fought for.
    pub soon: Duration,
    /// Slices are for so many things at least: nodes that pass a flag or one mutex to and fro need it at once.
    pub least: u32,
    /// How many losses are remembered, each in the place of its key modulo this.
    pub remembered: u32,
}

/// Whose turn it is: of two, the lesser one is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turn {
    /// The number of the node's present or next slice.
    pub slice: u32,
    /// The node.
    pub node: NodeId,
}

/// When something left this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Loss {
    /// What; `None` if nothing was lost yet.
    key: Option<u64>,
    /// In milliseconds.
    at: u32,
    /// The slice in which it came back last.
    counted: u32,
    /// This node could write it.
    written: bool,
}

/// The slices of one node. What nodes fight for is known by a key: pages by their numbers, others by numbers
/// that no page has. Of each loss is kept whether this node could write what left it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slices {
    rules: SliceRules,
    /// As long as the places of what was lost ask for.
    losses: Vec<Loss>,
    /// When the present slice, or the last one, began; `None` if it was ended.
    began: Option<Duration>,
    /// The waits for what came back in it.
    waited: Duration,
    /// How many things came back in it.
    back: u32,
    /// Its number, and the highest one that another node has named.
    slice: u32,
    seen: u32,
    /// How long threads wait on average for what nobody keeps.
    usual: Duration,
}

impl Slices {
    /// The first key of what is no page.
    pub(crate) const OTHERS: u64 = 1 << 63;

    pub(crate) fn new(rules: SliceRules) -> Self {
        Self {
            rules,
            losses: Vec::new(),
            began: Some(Duration::ZERO),
            waited: Duration::ZERO,
            back: 0,
            slice: 0,
            seen: 0,
            usual: Duration::ZERO,
        }
    }

    /// Something leaves this node, whose threads could use it.
    pub(crate) fn lost(&mut self, key: u64, written: bool, now: Duration) {
        let place = self.place(key);
        if place >= self.losses.len() {
            self.losses.resize((place + 1).next_power_of_two(), Loss::default());
        }
        let loss = &mut self.losses[place];
        let counted = if loss.key == Some(key) { loss.counted } else { 0 };
        *loss = Loss { key: Some(key), at: milliseconds(now), counted, written };
    }

    /// True if it is remembered that this node could write what left it last.
    pub(crate) fn was_written(&self, key: u64) -> bool {
        self.loss(key).is_some_and(|loss| loss.written)
    }

    pub(crate) fn was_lost_lately(&self, key: u64, now: Duration) -> bool {
        self.loss(key)
            .is_some_and(|loss| milliseconds(now).wrapping_sub(loss.at) <= milliseconds(self.rules.soon))
    }

    /// Something comes for threads that have waited so long for it, perhaps for a node that kept it.
    pub(crate) fn came(&mut self, key: u64, waited: Duration, kept: bool, now: Duration) {
        // Slices that grew with waits for slices would grow for ever. Some waits are long because a processor had other things to do.
        if !kept {
            self.usual = match waited.checked_sub(self.usual) {
                Some(longer) if !self.usual.is_zero() => self.usual + longer.min(self.usual) / 32,
                _ => (self.usual + waited) / 2,
            };
        }
        if self.was_lost_lately(key, now) {
            // Where the clock stands still, numbers must not grow for ever.
            if self.end().is_none_or(|end| now > end) {
                self.slice = self.number(now);
                (self.began, self.waited, self.back) = (Some(now), Duration::ZERO, 0);
            }
            self.count(key);
            self.waited += waited.min(self.usual);
        }
    }

    /// Something comes beside what threads have waited for. True if it comes back in the present slice.
    pub(crate) fn came_along(&mut self, key: u64, now: Duration) -> bool {
        let comes_back = self.lasts(now) && self.was_lost_lately(key, now);
        if comes_back {
            self.count(key);
        }
        comes_back
    }

    /// The present slice becomes longer, as if threads had waited for so many quarters of the usual time.
    pub(crate) fn lengthen(&mut self, quarters: u32) {
        self.waited += self.usual / 4 * quarters;
    }

    /// The present slice is over.
    pub(crate) fn finish(&mut self) {
        self.began = None;
    }

    /// True in a slice in which enough has come back.
    pub(crate) fn collects(&self, now: Duration) -> bool {
        self.back >= self.rules.least && self.lasts(now)
    }

    /// The number of the present slice, or else of the next one. A node that had none for long does not make up for that.
    pub(crate) fn number(&self, now: Duration) -> u32 {
        if self.lasts(now) { self.slice } else { (self.slice + 1).max(self.seen.saturating_sub(1)) }
    }

    /// Another node asks for something.
    pub(crate) fn saw(&mut self, slice: u32) {
        self.seen = self.seen.max(slice);
    }

    /// Until when something stays on this node, `me`, that another node wants; `None` if it may leave.
    pub(crate) fn keeps(&self, key: u64, wanted: Turn, me: NodeId, now: Duration) -> Option<Duration> {
        let keeps = self.collects(now)
            && Turn { slice: self.slice, node: me } < wanted
            && self.was_lost_lately(key, now);
        self.end().filter(|_| keeps)
    }

    /// Something came back in the present slice.
    fn count(&mut self, key: u64) {
        let place = self.place(key);
        if std::mem::replace(&mut self.losses[place].counted, self.slice) != self.slice {
            self.back += 1;
        }
    }

    fn lasts(&self, now: Duration) -> bool {
        self.end().is_some_and(|end| end > now)
    }

    fn end(&self) -> Option<Duration> {
        let length = (self.waited * self.rules.share).clamp(self.rules.shortest, self.rules.longest);
        self.began.map(|began| began + length)
    }

    fn loss(&self, key: u64) -> Option<&Loss> {
        self.losses.get(self.place(key)).filter(|loss| loss.key == Some(key))
    }

    fn place(&self, key: u64) -> usize {
        to_usize(key % u64::from(self.rules.remembered))
    }
}

/// A time in milliseconds, modulo 2^32.
fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis() % (1 << 32)).expect("it is less than 2^32")
}
