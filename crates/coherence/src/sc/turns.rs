//! Whose request for a page is served first: those of nodes whose turn is earlier, and those that no slice keeps waiting.
//!
//! A request that waits for the end of a slice must not keep others waiting from which the page is not kept: their nodes may be in
//! slices of their own, in which others wait for them.

use super::Sc;
use super::message::ScMessage;
use super::state::{BUSY, Request};
use crate::slices::Turn;
use crate::{Env, Page, Violation};
use gondwana_topology::NodeSet;

impl Sc {
    /// At the manager: adds a request to those for a page, behind those of earlier slices and of the same one.
    pub(super) fn line_up(&mut self, page: Page, request: Request) {
        let served = usize::from(self.pages.entry(page).has(BUSY));
        let queue = &mut self.pages.record(page).queue;
        let kept = !queue.is_empty();
        let behind = queue.iter().skip(served).rposition(|other| other.slice <= request.slice);
        queue.insert(behind.map_or(served, |behind| behind + served + 1), Request { kept, ..request });
    }

    /// At the manager: moves the first request from which this node does not keep the page before the others. `None`: it keeps the page
    /// from all of them.
    pub(super) fn first_in_turn(&mut self, page: Page, env: &dyn Env) -> Option<Request> {
        let waiting = self.pages.record(page).queue.len();
        let place = (0..waiting).find(|&place| {
            let request = self.pages.record(page).queue[place];
            !self.is_kept_from(page, request, env)
        })?;
        let queue = &mut self.pages.record(page).queue;
        let request = queue.remove(place)?;
        queue.push_front(request);
        Some(request)
    }

    /// At the manager: if the page may be kept from the request that is being served, and one of an earlier turn waits, tells those who
    /// may keep it.
    pub(super) fn hurry(&mut self, page: Page, env: &mut dyn Env) {
        let (entry, me) = (*self.pages.entry(page), self.pages.me());
        let Some(managed) = self.pages.known(entry).filter(|_| entry.has(BUSY)) else { return };
        let Some(&served) = managed.queue.front() else { return };
        let Some(turn) = managed.queue.iter().skip(1).map(Request::turn).min() else { return };
        if turn >= served.turn() {
            return;
        }
        let mut keepers = if served.write { managed.copies } else { NodeSet::EMPTY };
        keepers.insert(entry.owner);
        for node in keepers.iter().filter(|&node| node != me && node != served.requester) {
            let Turn { slice, node: requester } = turn;
            self.send(node, &ScMessage::Hurry { first: page, requester, slice }, env);
        }
    }

    /// A node whose turn it is waits behind the one that is to get a page from here.
    pub(super) fn take_hurry(&mut self, page: Page, turn: Turn, env: &mut dyn Env) -> Result<(), Violation> {
        self.pages.check(page, 1)?;
        let me = self.pages.me();
        // This node itself may wait behind the other one, to write what it keeps.
        if turn.node != me {
            self.pages.check_node("Hurry", turn.node)?;
        }
        self.holds.saw(turn.slice);
        if self.holds.end(page, turn, me, env).is_some() {
            return Ok(());
        }
        let is_about = |message: &ScMessage| {
            message.taken().is_some_and(|(first, count, _)| first <= page && page.0 - first.0 < count)
        };
        let Some(place) = self.parked.iter().position(|(_, message)| is_about(message)) else {
            return Ok(());
        };
        let (from, mut message) = self.parked.swap_remove(place);
        if let Some((first, _, _)) = message.taken().filter(|(first, ..)| *first < page) {
            let (before, rest) = message.split(page.0 - first.0);
            self.parked.push((from, before));
            message = rest;
        }
        if message.taken().is_some_and(|(_, count, _)| count > 1) {
            let (now, after) = message.split(1);
            self.parked.push((from, after));
            message = now;
        }
        self.comply(from, &message, true, env);
        Ok(())
    }
}
