//! Diffs that a node has and may not show yet (`ordered.rs`): at the home of a page, and at a sharer that is updated.
//!
//! - *All at once.* A flush is committed when its origin says that all have been told of it. Then the pages of its diffs are taken from the
//!   threads of this node, all are changed, and all are given back.
//! - *In one order.* The home applies the diffs of a page in the order in which they came, and passes them on in that order; so all sharers
//!   have the same bytes in the end, whatever writes the program leaves unordered. A committed diff therefore waits for those before it, and
//!   its page with it. What this node itself releases comes behind what it keeps: those bytes are taken out of the older diffs. A
//!   sharer's diff is behind the updates that come until its home acknowledges it.
//! - *Given up.* The updates of a copy that is given up go into its frame at once, which nobody sees: the home may come to be here without
//!   contents, and counts on them.

use super::Csm;
use super::state::{State, TWIN};
use crate::runs::{leading, runs};
use crate::{Access, Env, Page, Violation};
use gondwana_topology::NodeId;
use std::collections::BTreeMap;

/// A diff that may not be shown yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Uncommitted {
    origin: NodeId,
    flush: u64,
    /// Empty if later diffs have all its bytes.
    diff: Vec<u8>,
    /// Its flush is, but not a diff of the same page that came before.
    committed: bool,
}

/// A page with such diffs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Awaiting {
    /// Threads of this node cannot reach the page.
    taken: bool,
    /// In the order in which they came.
    diffs: Vec<Uncommitted>,
}

/// What a node may not show yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Unshown {
    awaiting: BTreeMap<Page, Awaiting>,
    /// True if threads can reach one of these pages.
    shows_some: bool,
    /// The diffs that this node has sent and their homes have not acknowledged.
    sent: BTreeMap<Page, Vec<u8>>,
}

impl Csm {
    /// True of a page with diffs that are not shown yet.
    pub(super) fn is_uncommitted(&self, page: Page) -> bool {
        self.order.unshown.awaiting.contains_key(&page)
    }

    /// True of such a page that threads of this node cannot reach.
    pub(super) fn is_taken(&self, page: Page) -> bool {
        self.order.unshown.awaiting.get(&page).is_some_and(|awaiting| awaiting.taken)
    }

    /// True if threads of this node can reach no page with uncommitted diffs.
    pub(super) fn has_taken_uncommitted(&self) -> bool {
        !self.order.unshown.shows_some
    }

    /// Keeps a diff of a node's flush until that is committed.
    pub(super) fn keep_diff(&mut self, page: Page, (origin, flush): (NodeId, u64), diff: Vec<u8>) {
        let unshown = &mut self.order.unshown;
        let awaiting = unshown.awaiting.entry(page).or_default();
        awaiting.diffs.push(Uncommitted { origin, flush, diff, committed: false });
        unshown.shows_some |= !awaiting.taken;
    }

    /// An update but for bytes that the home has from this node behind it.
    pub(super) fn without_sent(&mut self, page: Page, diff: &[u8], env: &mut dyn Env) -> Vec<u8> {
        match self.order.unshown.sent.get(&page) {
            Some(sent) => rest(page, diff, sent, env),
            None => diff.to_vec(),
        }
    }

    /// This node releases a diff of a page.
    pub(super) fn put_behind_kept(&mut self, page: Page, diff: &[u8], env: &mut dyn Env) {
        let Some(awaiting) = self.order.unshown.awaiting.get_mut(&page) else { return };
        for kept in awaiting.diffs.iter_mut().filter(|kept| !kept.diff.is_empty()) {
            kept.diff = rest(page, &kept.diff, diff, env);
        }
    }

    /// It has sent one to the home.
    pub(super) fn note_sent(&mut self, page: Page, diff: Vec<u8>) {
        self.order.unshown.sent.insert(page, diff);
    }

    /// The home has acknowledged this node's diff of a page.
    pub(super) fn forget_sent(&mut self, page: Page) {
        self.order.unshown.sent.remove(&page);
    }

    /// Takes all pages with uncommitted diffs from this node's threads.
    pub(super) fn take_uncommitted(&mut self, env: &mut dyn Env) {
        self.order.acquired = true;
        if !std::mem::take(&mut self.order.unshown.shows_some) {
            return;
        }
        let pages = self.order.unshown.awaiting.iter_mut();
        let reached = pages.filter(|(_, awaiting)| !awaiting.taken);
        let take = |(&page, awaiting): (&Page, &mut Awaiting)| {
            awaiting.taken = true;
            page
        };
        let pages: Vec<Page> = reached.map(take).collect();
        for (first, count) in runs(&pages) {
            env.protect(first, count, Access::None);
        }
    }

    /// A flush of another node is complete.
    pub(super) fn take_commit(
        &mut self,
        from: NodeId,
        flush: u64,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        self.pages.check_node("Commit", from)?;
        self.show_flushes(&[(from, flush)], env)
    }

    /// The former home of these pages has shown all diffs that this node keeps of them: their flushes are committed.
    pub(super) fn show_as_former_home(
        &mut self,
        pages: impl Iterator<Item = Page>,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        let kept = pages.filter_map(|page| self.order.unshown.awaiting.get(&page));
        let flushes: Vec<(NodeId, u64)> =
            kept.flat_map(|awaiting| &awaiting.diffs).map(|kept| (kept.origin, kept.flush)).collect();
        if flushes.is_empty() { Ok(()) } else { self.show_flushes(&flushes, env) }
    }

    fn show_flushes(&mut self, flushes: &[(NodeId, u64)], env: &mut dyn Env) -> Result<(), Violation> {
        let mut shows = false;
        for awaiting in self.order.unshown.awaiting.values_mut() {
            for kept in &mut awaiting.diffs {
                kept.committed |= flushes.contains(&(kept.origin, kept.flush));
            }
            shows |= awaiting.diffs.first().is_some_and(|first| first.committed);
        }
        if shows {
            self.show_committed(env);
        }
        self.serve_postponed(env)
    }

    /// Shows committed diffs all at once, but for those behind others.
    fn show_committed(&mut self, env: &mut dyn Env) {
        // Takes all pages with diffs from this node's threads.
        self.invalidate(env);
        let (mut shown, pages) = (Vec::new(), &self.pages);
        self.order.unshown.awaiting.retain(|&page, Awaiting { diffs, .. }| {
            let committed = diffs.iter().take_while(|kept| kept.committed).count();
            for kept in diffs.drain(..committed) {
                apply(page, &kept.diff, pages.get(page).has(TWIN), env);
            }
            if diffs.is_empty() {
                shown.push(page);
            }
            !diffs.is_empty()
        });
        for (first, count) in runs(&shown) {
            let (mut next, end) = (first, first.0 + count);
            while next.0 < end {
                let access = self.access(next);
                let alike = self.pages.layout().clip(next, end - next.0);
                let alike = leading(next, alike, |page| self.access(page) == access);
                env.protect(next, alike, access);
                next.0 += alike;
            }
            self.resume(first, count, env);
        }
    }

    /// What threads may do with a page of this home, or a copy.
    fn access(&self, page: Page) -> Access {
        match self.pages.get(page).state {
            State::HomeExclusive | State::HomeDirty | State::Dirty => Access::Write,
            State::HomeLeaving => Access::None,
            _ => Access::Read,
        }
    }

    /// Applies all diffs of a page that no thread can reach. Threads that wait for it may ask for it again.
    pub(super) fn apply_hidden(&mut self, page: Page, env: &mut dyn Env) {
        let Some(Awaiting { diffs, .. }) = self.order.unshown.awaiting.remove(&page) else { return };
        let has_twin = self.pages.get(page).has(TWIN);
        diffs.iter().for_each(|kept| apply(page, &kept.diff, has_twin, env));
        self.resume(page, 1, env);
    }
}

/// Writes a diff to a page, and to its twin if it has one.
pub(super) fn apply(page: Page, diff: &[u8], has_twin: bool, env: &mut dyn Env) {
    match has_twin {
        _ if diff.is_empty() => (),
        true => env.patch_with_twin(page, diff),
        false => env.patch(page, diff),
    }
}

/// What is in `diff` and not in a `later` one.
fn rest(page: Page, diff: &[u8], later: &[u8], env: &mut dyn Env) -> Vec<u8> {
    let mut rest = Vec::new();
    env.diff_without(page, diff, later, &mut rest);
    rest
}
