//! Write notices and what an acquire does about them.

use super::Csm;
use super::message::CsmMessage;
use super::state::{PENDING, REFETCH, State};
use crate::runs::{count_of, runs};
use crate::{Access, Env, Event, Page, Violation};
use gondwana_topology::NodeId;

impl Csm {
    pub(super) fn take_notices(
        &mut self,
        from: NodeId,
        flush: u64,
        origin: NodeId,
        pages: &[Page],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        self.pages.check_node("Notices", from)?;
        for &page in pages {
            self.pages.check(page, 1)?;
        }
        for (first, count) in runs(pages) {
            env.observe(Event::NoticeReceived, first, count, origin);
        }
        for &page in pages {
            // It may have become a copy without this node's doing.
            self.withdraw(page, env);
            let entry = self.pages.entry(page);
            // Where there is no copy and none on its way, the page is fetched before the next access anyway.
            let copy = matches!(entry.state, State::Shared | State::Dirty | State::Fetching);
            if copy && !entry.has(PENDING) {
                entry.set(PENDING);
                self.pending.push(page);
            }
        }
        self.counters.notices_received += pages.len() as u64;
        if origin == self.pages.me() {
            return self.take_notice_ack(flush, env);
        }
        self.pages.check_node("Notices", origin)?;
        self.send(origin, &CsmMessage::NoticeAck { flush }, &[], env);
        Ok(())
    }

    /// Gives up every copy that there is a notice about.
    pub(super) fn invalidate(&mut self, env: &mut dyn Env) {
        if self.pending.is_empty() {
            return;
        }
        let mut pages = std::mem::take(&mut self.pending);
        pages.sort_unstable();
        pages.dedup();
        self.update_kept(&mut pages, env);
        pages.retain(|&page| {
            let entry = self.pages.entry(page);
            if !entry.take(PENDING) {
                return false;
            }
            let stale = match entry.state {
                State::Shared => State::Invalid,
                State::Dirty => State::StaleDirty,
                State::Fetching => {
                    entry.set(REFETCH);
                    return false;
                }
                _ => return false,
            };
            entry.state = stale;
            true
        });
        for (first, count) in runs(&pages) {
            env.protect(first, count, Access::None);
        }
        // One system call may be about pages of several homes.
        let home = |page: Page| self.pages.get(page).probable_home;
        for run in pages.chunk_by(|&a, &b| a.0 + 1 == b.0 && home(a) == home(b)) {
            env.observe(Event::Invalidated, run[0], count_of(run), home(run[0]));
        }
        self.counters.invalidations += pages.len() as u64;
        pages.clear();
        self.pending = pages;
    }
}
