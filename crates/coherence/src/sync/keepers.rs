//! Conditions, futexes, semaphores and readers-writer locks: the state of each is at its manager, or rests with a node that uses
//! it alone, or each of several nodes may do what does not change it for the others.

use super::keeper_history::History;
use super::keeper_message::{About, KeeperMessage, KeeperViolation};
use super::object_states::{ObjectState, ObjectStates};
use super::request::{Caller, Initialised, Reply, Request, Ticket};
use super::resting::{Rest, Resting};
use super::table::Table;
use super::{Answer, ObjectKey, ObjectKind};
use crate::Outcome;
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What objects of these kinds are at hand on a node: shared between the machine and the threads' fast path.
pub type RestingTable = Table<Resting>;

/// The node as the machine of resting objects sees it.
pub trait KeeperEnv {
    /// Sends a message; `to` is never this node. Messages between two nodes arrive in the order sent.
    fn send(&mut self, to: NodeId, message: KeeperMessage);
    /// Sends a request to the manager of its object, which is not this node.
    fn submit(&mut self, manager: NodeId, ticket: Ticket, request: Request);
    /// Gives an answer to the node that asked, perhaps this one.
    fn answer(&mut self, reply: Reply);
    /// The object is about to leave: what threads of this node wrote must be released first. `Done` if it is already, otherwise
    /// the node calls [`Keepers::flushed`] when it is.
    fn release(&mut self, key: ObjectKey) -> Outcome;
    /// The object rests here from now on: the node acquires.
    fn arrived(&mut self, key: ObjectKey);
}

/// What resting objects did on this node so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeeperCounters {
    /// Objects that came to rest here.
    pub kept: u64,
    /// Objects that this node came to share.
    pub shared: u64,
    /// Objects and shares that were recalled.
    pub recalled: u64,
}

/// What a node has of an object that is not at its manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kept {
    /// All of it: in the table, or, while threads wait for it, among the states.
    Owned,
    /// The right to what does not change it for others. Nobody waits for it, and nobody holds it for writing.
    Shared,
}

/// What is under way from a node to the manager.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Leaving {
    manager: NodeId,
    what: About,
}

/// At the manager: where an object is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Place {
    out: Option<Out>,
    history: History,
}

/// Other nodes, or the manager as one of them, have the object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Out {
    holders: Vec<NodeId>,
    shared: bool,
    /// All are to give it back.
    recalled: bool,
    /// What waits for that.
    pending: VecDeque<(Caller, Request)>,
}

/// The machine of resting objects on one node.
///
/// Every object has a manager, which all requests go to that a node cannot serve itself. A node that uses an object alone gets it
/// from the manager, to *keep*: then its threads need no message, and its writes are released only when the object leaves.
/// Several nodes *share* what only looks at an object: they lock it for reading, or signal while nobody waits. Any other request
/// has the manager recall what nodes have, serve the request, and leave the object where it is until `History` says
/// otherwise.
///
/// The node calls these one at a time, under its lock.
pub struct Keepers {
    me: NodeId,
    table: Arc<RestingTable>,
    /// Of objects that this node manages and that are not out, and of those that it keeps and that do not rest in the table.
    states: ObjectStates,
    kept: BTreeMap<ObjectKey, Kept>,
    leaving: BTreeMap<ObjectKey, Leaving>,
    places: BTreeMap<ObjectKey, Place>,
    counters: KeeperCounters,
    /// Reused; empty between calls.
    replies: Vec<Reply>,
}

impl Keepers {
    /// The machine of a node, sharing `table` with the fast path of its threads.
    #[must_use]
    pub fn new(me: NodeId, table: Arc<RestingTable>) -> Self {
        Self {
            me,
            table,
            states: ObjectStates::default(),
            kept: BTreeMap::new(),
            leaving: BTreeMap::new(),
            places: BTreeMap::new(),
            counters: KeeperCounters::default(),
            replies: Vec::new(),
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> &KeeperCounters {
        &self.counters
    }

    /// The semaphores whose state is here, each as if it had just been initialised with its present value; those that no thread has used
    /// are missing.
    #[must_use]
    pub fn semaphores(&self) -> Vec<Initialised> {
        let kept = self.kept.keys().filter(|key| key.kind == ObjectKind::Semaphore);
        let resting = kept.filter_map(|key| {
            let (value, stamp) = self.table.resting(*key)?.semaphore()?;
            Some(Initialised { object: key.object, value, stamp })
        });
        resting.chain(self.states.semaphores()).collect()
    }

    /// A thread of this node requests something, unless that would need another node or a release: then false.
    pub fn request_here(
        &mut self,
        key: ObjectKey,
        ticket: Ticket,
        request: &Request,
        env: &mut dyn KeeperEnv,
    ) -> bool {
        let caller = Caller { node: self.me, ticket };
        match self.kept.get(&key) {
            Some(Kept::Owned) => {
                self.perform_owned(key, caller, request, env);
                true
            }
            Some(Kept::Shared) => {
                let entry = self.table.entry(key.word());
                let answer = match request {
                    Request::RwLock { write: false, .. } if entry.read() => Some(0),
                    Request::RwUnlock { write: false, .. } if entry.end_read() => Some(0),
                    Request::CondSignal { awaited: true, .. }
                    | Request::CondBroadcast { awaited: true, .. }
                    | Request::FutexWake { .. } => Some(0),
                    Request::CondSignal { .. } | Request::CondBroadcast { .. } => None,
                    _ => return false,
                };
                if let Some(value) = answer {
                    env.answer(caller.reply(Answer::Done(value)));
                }
                true
            }
            None => false,
        }
    }

    /// A thread of this node requests something of an object, whose manager is given. What the thread wrote is released.
    pub fn request(
        &mut self,
        key: ObjectKey,
        manager: NodeId,
        ticket: Ticket,
        request: Request,
        env: &mut dyn KeeperEnv,
    ) {
        if matches!(request, Request::Cancel { .. }) && self.kept.get(&key) == Some(&Kept::Owned) {
            let caller = Caller { node: self.me, ticket };
            // What is to be given up may still be on its way to the manager and back.
            if !self.perform_owned(key, caller, &request, env) && manager != self.me {
                env.submit(manager, ticket, request);
            }
            return;
        }
        if self.request_here(key, ticket, &request, env) {
            return;
        }
        if manager == self.me {
            self.serve(key, Caller { node: self.me, ticket }, request, env);
        } else {
            env.submit(manager, ticket, request);
        }
    }

    /// At the manager: a request of another node arrived.
    pub fn requested(
        &mut self,
        key: ObjectKey,
        from: NodeId,
        ticket: Ticket,
        request: Request,
        env: &mut dyn KeeperEnv,
    ) {
        self.serve(key, Caller { node: from, ticket }, request, env);
    }

    /// A message arrived.
    ///
    /// # Errors
    /// The peer broke the protocol: the run must end.
    pub fn message(
        &mut self,
        from: NodeId,
        message: KeeperMessage,
        env: &mut dyn KeeperEnv,
    ) -> Result<(), KeeperViolation> {
        let KeeperMessage { key, what } = message.clone();
        let permitted = match what {
            About::Keep(rest) => self.begin_to_have(key, Kept::Owned, Some(rest), env),
            About::Share => self.begin_to_have(key, Kept::Shared, None, env),
            About::Recall => self.give_back(key, from, env),
            About::Return { state, readers, uses } => self.returned(key, from, (state, readers, uses), env),
            About::Back(ticket, request) => {
                let keeps = self.kept.get(&key) == Some(&Kept::Owned) && request.key() == Some(key);
                if keeps {
                    self.perform_owned(key, Caller { node: self.me, ticket }, &request, env);
                }
                keeps
            }
        };
        if permitted { Ok(()) } else { Err(KeeperViolation { from, message: Box::new(message) }) }
    }

    /// The release that [`KeeperEnv::release`] began is complete: the object leaves.
    pub fn flushed(&mut self, key: ObjectKey, env: &mut dyn KeeperEnv) {
        let Some(Leaving { manager, what }) = self.leaving.remove(&key) else { return };
        if manager != self.me {
            env.send(manager, KeeperMessage { key, what });
        } else if let About::Return { state, readers, uses } = what {
            self.returned(key, self.me, (state, readers, uses), env);
        }
    }

    /// A request about an object that this node keeps: true if another request was given up for it.
    fn perform_owned(
        &mut self,
        key: ObjectKey,
        caller: Caller,
        request: &Request,
        env: &mut dyn KeeperEnv,
    ) -> bool {
        let entry = self.table.entry(key.word());
        entry.use_once();
        if let Some(rest) = entry.take() {
            self.states.stir(key, self.me, rest);
        }
        let gives_up = self.perform(key, caller, request, env);
        if let Some(rest) = self.states.rest(key, self.me) {
            self.table.entry(key.word()).keep(rest);
        }
        gives_up
    }

    fn perform(
        &mut self,
        key: ObjectKey,
        caller: Caller,
        request: &Request,
        env: &mut dyn KeeperEnv,
    ) -> bool {
        let mut replies = std::mem::take(&mut self.replies);
        self.states.request(key, caller, request, &mut replies);
        let gives_up = replies.last().is_some_and(|reply| reply.answer == Answer::Cancelled);
        replies.drain(..).for_each(|reply| env.answer(reply));
        self.replies = replies;
        gives_up
    }

    /// What this node gets of an object. False if it has some of it.
    fn begin_to_have(
        &mut self,
        key: ObjectKey,
        what: Kept,
        rest: Option<Rest>,
        env: &mut dyn KeeperEnv,
    ) -> bool {
        if self.leaving.contains_key(&key) || self.kept.insert(key, what).is_some() {
            return false;
        }
        env.arrived(key);
        let entry = self.table.entry(key.word());
        let _uses_before = entry.take_uses();
        match rest {
            Some(rest) => {
                self.counters.kept += 1;
                entry.keep(rest);
            }
            None => {
                self.counters.shared += 1;
                entry.share();
            }
        }
        true
    }

    /// The manager recalls what this node has. False if it has nothing.
    fn give_back(&mut self, key: ObjectKey, manager: NodeId, env: &mut dyn KeeperEnv) -> bool {
        let Some(had) = self.kept.remove(&key) else { return false };
        self.counters.recalled += 1;
        let entry = self.table.entry(key.word());
        let uses = entry.take_uses();
        let rest = entry.take();
        let (mut state, mut readers) = (None, 0);
        match had {
            Kept::Owned => {
                if let Some(rest) = rest {
                    self.states.stir(key, self.me, rest);
                }
                state = self.states.take(key);
            }
            Kept::Shared => readers = rest.map_or(0, |rest| rest.count),
        }
        self.leaving.insert(key, Leaving { manager, what: About::Return { state, readers, uses } });
        if env.release(key) == Outcome::Done {
            self.flushed(key, env);
        }
        true
    }

    /// At the manager: a request of a thread, perhaps of this node.
    fn serve(&mut self, key: ObjectKey, caller: Caller, request: Request, env: &mut dyn KeeperEnv) {
        let is_light = is_light(&request);
        match self.places.entry(key).or_default().out.as_mut() {
            None => self.serve_here(key, caller, &request, true, env),
            Some(out) if out.recalled => out.pending.push_back((caller, request)),
            Some(out) if out.shared && is_light => self.serve_here(key, caller, &request, true, env),
            // It was sent before the object came.
            Some(out) if !out.shared && out.holders == [caller.node] && caller.node != self.me => {
                env.send(caller.node, KeeperMessage { key, what: About::Back(caller.ticket, request) });
            }
            Some(out) => {
                out.recalled = true;
                out.pending.push_back((caller, request));
                let holders = out.holders.clone();
                // What this node has comes back last: with it, all may be there.
                for holder in holders.iter().filter(|holder| **holder != self.me) {
                    env.send(*holder, KeeperMessage { key, what: About::Recall });
                }
                if holders.contains(&self.me) {
                    self.give_back(key, self.me, env);
                }
            }
        }
    }

    /// A request about an object whose state is here. Then the caller's node may get the object.
    fn serve_here(
        &mut self,
        key: ObjectKey,
        caller: Caller,
        request: &Request,
        may_give: bool,
        env: &mut dyn KeeperEnv,
    ) {
        let looks = is_light(request) && self.states.is_shareable(key);
        self.perform(key, caller, request, env);
        if matches!(request, Request::Cancel { .. } | Request::RwUnlock { .. }) {
            return;
        }
        let node = caller.node;
        let place = self.places.entry(key).or_default();
        if looks {
            let holders = place.out.as_ref().map_or(&[][..], |out| &out.holders);
            if place.history.look() && may_give && !holders.contains(&node) {
                let out = place.out.get_or_insert_with(|| Out::to(true));
                out.holders.push(node);
                self.give(key, node, Kept::Shared, None, env);
            }
        } else if place.history.change(node)
            && may_give
            && let Some(rest) = self.states.rest(key, node)
        {
            place.out.get_or_insert_with(|| Out::to(false)).holders.push(node);
            self.give(key, node, Kept::Owned, Some(rest), env);
        }
    }

    fn give(
        &mut self,
        key: ObjectKey,
        node: NodeId,
        kept: Kept,
        rest: Option<Rest>,
        env: &mut dyn KeeperEnv,
    ) {
        if node == self.me {
            self.begin_to_have(key, kept, rest, env);
        } else {
            env.send(node, KeeperMessage { key, what: rest.map_or(About::Share, About::Keep) });
        }
    }

    /// At the manager: a node has given back what it had. False if it had nothing, or nobody has recalled it.
    fn returned(
        &mut self,
        key: ObjectKey,
        from: NodeId,
        (state, readers, uses): (Option<ObjectState>, u32, u32),
        env: &mut dyn KeeperEnv,
    ) -> bool {
        let Some(place) = self.places.get_mut(&key) else { return false };
        let Some(out) = place.out.as_mut().filter(|out| out.recalled) else { return false };
        let Some(index) = out.holders.iter().position(|holder| *holder == from) else { return false };
        out.holders.swap_remove(index);
        place.history.returned(out.shared, uses);
        if out.shared {
            self.states.add_readers(key, from, readers);
        } else if !self.states.put(key, state) {
            return false;
        }
        if !out.holders.is_empty() {
            return true;
        }
        let mut pending = std::mem::take(&mut out.pending);
        place.out = None;
        while let Some((caller, request)) = pending.pop_front() {
            self.serve_here(key, caller, &request, pending.is_empty(), env);
        }
        true
    }
}

impl Out {
    fn to(shared: bool) -> Self {
        Self { holders: Vec::new(), shared, recalled: false, pending: VecDeque::new() }
    }
}

/// True if nodes that share an object need not hear of the request.
fn is_light(request: &Request) -> bool {
    matches!(
        request,
        Request::RwLock { write: false, .. }
            | Request::RwUnlock { write: false, .. }
            | Request::CondSignal { .. }
            | Request::CondBroadcast { .. }
            | Request::FutexWake { .. }
            | Request::Cancel { .. }
    )
}

#[cfg(test)]
impl Keepers {
    /// An independent machine in the same state.
    pub(super) fn duplicate(&self) -> Self {
        let table = Arc::new(RestingTable::with_first_bits(1));
        for (object, entry) in self.table.contents() {
            table.entry(object).copy_from(entry);
        }
        Self {
            me: self.me,
            table,
            states: self.states.clone(),
            kept: self.kept.clone(),
            leaving: self.leaving.clone(),
            places: self.places.clone(),
            counters: self.counters,
            replies: Vec::new(),
        }
    }

    /// All that decides how the machine goes on.
    pub(super) fn essence(&self) -> impl Eq + std::hash::Hash + std::fmt::Debug {
        let entries: Vec<_> =
            self.table.contents().into_iter().map(|(object, entry)| (object, entry.parts())).collect();
        (entries, self.states.clone(), self.kept.clone(), self.leaving.clone(), self.places.clone())
    }

    pub(super) fn table(&self) -> &RestingTable {
        &self.table
    }
}
