//! Two `csm` machines that can reach each other's memory: what a visit does, and when a message is sent all the same.

mod common;

use common::memory::{Effects, Memory, SimEnv, encoded};
use gondwana_coherence::{
    Access, Csm, CsmMessage, CsmOptions, Encoded, Grant, Layout, Managers, Outcome, Page, Protocol, Region,
    State, Waiter,
};
use gondwana_topology::{NodeId, NodeSet};
use std::collections::VecDeque;

const PAGES: u32 = 8;
const SIZE: usize = 4;
const HOME: usize = 0;
const VISITOR: usize = 1;

/// The home manages all pages.
struct Pair {
    machines: [Csm; 2],
    memories: [Memory; 2],
}

impl Pair {
    fn new(one_sided: bool) -> Self {
        let machine = |me| {
            let managers = Managers::Node(NodeId(HOME as u16));
            let layout = Layout::new(2, NodeId(me), vec![Region { first: Page(0), count: PAGES, managers }]);
            Csm::new(layout, CsmOptions { one_sided, ..CsmOptions::default() })
        };
        let memory = || Memory::new(PAGES as usize, SIZE);
        Self { machines: [machine(0), machine(1)], memories: [memory(), memory()] }
    }

    fn call<R>(&mut self, node: usize, act: impl FnOnce(&mut Csm, &mut SimEnv<'_>) -> R) -> (R, Effects) {
        let mut effects = Effects::default();
        let [first, second] = &mut self.memories;
        let (own, other) = if node == 0 { (first, second) } else { (second, first) };
        let neighbours = vec![(NodeId(1 - node as u16), other)];
        let mut env = SimEnv::new(NodeId(node as u16), own, &mut effects).beside(neighbours);
        let result = act(&mut self.machines[node], &mut env);
        (result, effects)
    }

    fn fault(&mut self, node: usize, page: u32, access: Access, ahead: u32) -> (Outcome, Vec<CsmMessage>) {
        let (outcome, effects) =
            self.call(node, |machine, env| machine.fault(Page(page), access, ahead, Waiter(1), env));
        (outcome, messages(effects))
    }

    /// The home's threads write some pages, which nobody else has.
    fn touch(&mut self, count: u32) {
        assert_eq!(self.fault(HOME, 0, Access::Write, count - 1), (Outcome::Done, vec![]));
        for page in 0..count as usize {
            self.memories[HOME].write(page * SIZE, 10 + page as u8);
        }
    }

    /// The visitor asks for the first pages by a message; gives what the home answers.
    fn asks_home(&mut self, count: u32, write: bool) -> Vec<CsmMessage> {
        let requester = NodeId(VISITOR as u16);
        let fetch = CsmMessage::Fetch { first: Page(0), count, write, requester, completed: 0 };
        let (result, effects) =
            self.call(HOME, |machine, env| machine.message(requester, &encoded(&fetch), &[], env));
        assert_eq!(result, Ok(()));
        messages(effects)
    }

    /// Makes the home look who has come for a page.
    fn asks_home_about(&mut self, page: u32) {
        self.call(HOME, |machine, env| machine.keep_out(Page(page), env));
        self.call(HOME, |machine, env| machine.let_in(env));
    }

    /// A node releases what it wrote; the other one then acquires.
    fn synchronise(&mut self, node: usize) {
        let (_, effects) = self.call(node, |machine, env| machine.release(Waiter(2), env));
        let mut sent: VecDeque<_> = effects.sent.into();
        while let Some((to, message, bulk)) = sent.pop_front() {
            let from = NodeId(1 - to.0);
            let (result, effects) =
                self.call(to.index(), |machine, env| machine.message(from, &message, &bulk, env));
            result.unwrap();
            sent.extend(effects.sent);
        }
        self.call(1 - node, |machine, env| machine.acquire(env));
    }

    fn state(&self, node: usize, page: u32) -> State {
        self.machines[node].page(Page(page)).state
    }

    fn access(&self, node: usize, page: usize) -> Access {
        self.memories[node].access[page]
    }
}

fn messages(effects: Effects) -> Vec<CsmMessage> {
    let sent = effects.sent.into_iter().map(|(_, message, _)| message);
    sent.map(|message| CsmMessage::decode(&message).expect("a message of the protocol")).collect()
}

#[test]
fn a_visit_copies_beside_writers_or_stops_them() {
    let mut pair = Pair::new(true);
    pair.touch(3);
    assert_eq!(pair.fault(VISITOR, 0, Access::Read, 7), (Outcome::Done, vec![]));
    for page in 0..3 {
        assert_eq!(pair.memories[VISITOR].read(page * SIZE), 10 + page as u8);
        assert_eq!(pair.access(VISITOR, page), Access::Read);
    }
    // There is room to write two of them down.
    assert_eq!([0, 1, 2].map(|page| pair.access(HOME, page)), [Access::Write, Access::Write, Access::Read]);
    assert_eq!(pair.access(VISITOR, 3), Access::None, "nobody has touched it");
    assert_eq!(pair.machines[VISITOR].counters().visits, 3);
}

#[test]
fn the_home_tells_its_visitors_what_was_written_beside_them() {
    let mut pair = Pair::new(true);
    pair.touch(1);
    assert_eq!(pair.fault(VISITOR, 0, Access::Read, 0).0, Outcome::Done);
    pair.memories[HOME].write(0, 99);
    let (outcome, effects) = pair.call(HOME, |machine, env| machine.release(Waiter(2), env));
    assert_eq!(outcome, Outcome::Wait);
    let sent = messages(effects);
    assert!(matches!(&sent[..], [CsmMessage::Notices { pages, .. }] if pages == &[Page(0)]), "{sent:?}");
    assert_eq!((pair.state(HOME, 0), pair.access(HOME, 0)), (State::HomeExclusive, Access::Write));
}

#[test]
fn a_page_that_nobody_writes_beside_its_visitors_is_shared() {
    let mut pair = Pair::new(true);
    pair.touch(1);
    assert_eq!(pair.fault(VISITOR, 0, Access::Read, 0).0, Outcome::Done);
    let (outcome, effects) = pair.call(HOME, |machine, env| machine.release(Waiter(2), env));
    assert_eq!((outcome, messages(effects)), (Outcome::Done, vec![]));
    assert_eq!((pair.state(HOME, 0), pair.access(HOME, 0)), (State::HomeShared, Access::Read));
    assert_eq!(pair.machines[HOME].page(Page(0)).sharers, NodeSet::only(NodeId(1)));
    // The next write is noted.
    assert_eq!(pair.fault(HOME, 0, Access::Write, 0), (Outcome::Done, vec![]));
    assert_eq!(pair.state(HOME, 0), State::HomeDirty);
}

/// The past of a page speaks for the node that writes it alone.
#[test]
fn a_visitor_that_writes_its_copy_becomes_home() {
    for written in [false, true] {
        let mut pair = Pair::new(true);
        pair.touch(1);
        assert_eq!(pair.fault(VISITOR, 0, Access::Read, 0).0, Outcome::Done);
        assert_eq!(pair.fault(VISITOR, 0, Access::Write, 0).0, Outcome::Done);
        pair.memories[VISITOR].write(1, 30);
        if written {
            pair.memories[HOME].write(0, 20);
        }
        pair.synchronise(VISITOR);
        let states = [HOME, VISITOR].map(|node| pair.state(node, 0));
        match written {
            false => assert_eq!(states, [State::Invalid, State::HomeExclusive]),
            true => assert_eq!((states[HOME], pair.access(HOME, 0)), (State::HomeDirty, Access::Write)),
        }
    }
}

#[test]
fn who_asks_to_write_becomes_home_of_a_page_that_only_it_has_visited() {
    let mut pair = Pair::new(true);
    pair.touch(2);
    assert_eq!(pair.fault(VISITOR, 0, Access::Read, 1).0, Outcome::Done);
    let sent = pair.asks_home(2, true);
    assert!(matches!(&sent[..], [CsmMessage::Pages { served: 2, grant: Grant::Home(_), .. }]), "{sent:?}");
}

/// Its answer may have been under way when the page was like the copy that the node had.
#[test]
fn who_has_asked_for_a_page_is_told_whatever_it_has() {
    let mut pair = Pair::new(true);
    pair.touch(1);
    assert_eq!(pair.fault(VISITOR, 0, Access::Read, 0).0, Outcome::Done);
    pair.asks_home(1, false);
    assert_eq!(pair.state(HOME, 0), State::HomeDirty);
    let (_, effects) = pair.call(HOME, |machine, env| machine.release(Waiter(2), env));
    assert!(matches!(messages(effects)[..], [CsmMessage::Notices { .. }]));
}

/// A page that others have used has a past, which the home looks at before it moves.
#[test]
fn who_will_write_asks_because_the_home_may_move() {
    let mut pair = Pair::new(true);
    pair.touch(1);
    assert_eq!(pair.fault(VISITOR, 0, Access::Read, 0).0, Outcome::Done);
    pair.memories[HOME].write(0, 99);
    pair.synchronise(HOME);
    let (outcome, sent) = pair.fault(VISITOR, 0, Access::Write, 0);
    assert_eq!(outcome, Outcome::Wait);
    assert!(matches!(sent[..], [CsmMessage::Fetch { write: true, .. }]), "{sent:?}");
    assert_eq!(pair.access(HOME, 0), Access::Write, "nothing was taken");
}

#[test]
fn who_is_the_first_to_write_becomes_home() {
    let mut pair = Pair::new(true);
    pair.touch(2);
    assert_eq!(pair.fault(VISITOR, 0, Access::Write, 7), (Outcome::Done, vec![]));
    for page in 0..2 {
        assert_eq!(pair.memories[VISITOR].read(page * SIZE), 10 + page as u8);
        assert_eq!((pair.access(VISITOR, page), pair.access(HOME, page)), (Access::Write, Access::Read));
        assert_eq!(pair.state(VISITOR, page as u32), State::HomeDirty);
    }
    assert_eq!(pair.state(VISITOR, 2), State::Invalid, "nobody has touched it");
    assert_eq!(pair.machines[VISITOR].counters().home_moves, 2);
    // The former home has copies, and is told like anybody who has.
    pair.synchronise(VISITOR);
    for page in 0..2 {
        assert_eq!(
            (pair.state(VISITOR, page), pair.state(HOME, page)),
            (State::HomeExclusive, State::Invalid)
        );
        assert_eq!(pair.machines[HOME].page(Page(page)).probable_home, NodeId(VISITOR as u16));
    }
}

#[test]
fn a_former_home_writes_a_copy() {
    let mut pair = Pair::new(true);
    pair.touch(1);
    assert_eq!(pair.fault(VISITOR, 0, Access::Write, 0).0, Outcome::Done);
    assert_eq!(pair.fault(HOME, 0, Access::Write, 0), (Outcome::Done, vec![]));
    assert_eq!((pair.state(HOME, 0), pair.state(VISITOR, 0)), (State::Dirty, State::HomeDirty));
    pair.memories[HOME].write(0, 20);
    pair.memories[VISITOR].write(1, 30);
    pair.synchronise(HOME);
    assert_eq!([0, 1].map(|at| pair.memories[VISITOR].read(at)), [20, 30]);
    assert_eq!(pair.machines[HOME].counters().exclusive_left, 1);
}

/// What the home has used alone is read-only at once, and a page that it writes again is exclusive again.
#[test]
fn pages_are_exposed_together() {
    let mut pair = Pair::new(true);
    pair.touch(4);
    pair.call(HOME, |machine, env| machine.expose(env));
    assert_eq!([0, 1, 2, 3].map(|page| pair.access(HOME, page)), [Access::Read; 4]);
    assert_eq!(pair.fault(VISITOR, 1, Access::Write, 0), (Outcome::Done, vec![]));
    assert_eq!(pair.state(VISITOR, 1), State::HomeDirty);
    // The page that has another home ends the run of those that nobody else has used.
    assert_eq!(pair.fault(HOME, 0, Access::Write, 3), (Outcome::Done, vec![]));
    assert_eq!([0, 1, 2].map(|page| pair.access(HOME, page)), [Access::Write, Access::Read, Access::Read]);
    assert_eq!((pair.state(HOME, 0), pair.state(HOME, 1)), (State::HomeExclusive, State::Shared));
    assert_eq!(pair.fault(HOME, 2, Access::Write, 1), (Outcome::Done, vec![]));
    assert_eq!(pair.state(HOME, 3), State::HomeExclusive);
}

#[test]
fn who_writes_what_only_it_has_read_becomes_home() {
    let mut pair = Pair::new(true);
    pair.touch(3);
    pair.call(HOME, |machine, env| machine.expose(env));
    assert_eq!(pair.fault(VISITOR, 0, Access::Read, 2), (Outcome::Done, vec![]));
    // The home has found the name at the last page, so that this is a sharer's copy.
    pair.asks_home_about(2);
    assert_eq!(pair.fault(VISITOR, 0, Access::Write, 2), (Outcome::Done, vec![]));
    let states = [0, 1, 2].map(|page| pair.state(VISITOR, page));
    assert_eq!(states, [State::HomeDirty, State::HomeDirty, State::Shared]);
    let counters = pair.machines[VISITOR].counters();
    assert_eq!((counters.home_moves, counters.twins, counters.page_transfers), (2, 0, 3));
    pair.synchronise(VISITOR);
    assert_eq!(
        [0, 1, 2].map(|page| pair.state(HOME, page)),
        [State::Invalid, State::Invalid, State::HomeShared]
    );
}

/// Of pages ahead that will be written, the home takes back those that nobody has come for.
#[test]
fn what_is_exposed_may_be_written_before_it_is() {
    let mut pair = Pair::new(true);
    pair.touch(6);
    pair.call(HOME, |machine, env| machine.expose(env));
    assert_eq!(pair.fault(VISITOR, 3, Access::Read, 0).0, Outcome::Done);
    assert_eq!(pair.fault(VISITOR, 4, Access::Write, 0).0, Outcome::Done);
    let ((), effects) = pair.call(HOME, |machine, env| machine.write_early(Page(2), 20, env));
    assert_eq!(messages(effects), []);
    let allowed = [1, 2, 3, 4, 5, 6].map(|page| pair.access(HOME, page));
    let (none, read, write) = (Access::None, Access::Read, Access::Write);
    assert_eq!(allowed, [read, write, read, read, write, none]);
}

/// One fault does for what its threads will write; each page is told of as if it had been written.
#[test]
fn a_home_writes_together_what_was_copied_together() {
    let mut pair = Pair::new(true);
    pair.touch(6);
    assert_eq!(pair.fault(VISITOR, 0, Access::Read, 4).0, Outcome::Done);
    assert_eq!(pair.fault(HOME, 2, Access::Write, 20), (Outcome::Done, vec![]));
    assert_eq!([2, 3, 4, 5].map(|page| pair.access(HOME, page)), [Access::Write; 4]);
    let states = [2, 3, 4, 5, 6].map(|page| pair.state(HOME, page));
    let dirty = State::HomeDirty;
    assert_eq!(states, [dirty, dirty, dirty, State::HomeExclusive, State::Untouched]);
    pair.memories[HOME].write(4 * SIZE, 40);
    pair.synchronise(HOME);
    assert_eq!([2, 3, 4].map(|page| pair.state(VISITOR, page)), [State::Invalid; 3]);
    assert_eq!(pair.fault(VISITOR, 4, Access::Read, 0).0, Outcome::Done);
    assert_eq!(pair.memories[VISITOR].read(4 * SIZE), 40);
}

#[test]
fn a_page_with_a_reader_has_no_home_to_be_taken() {
    let mut pair = Pair::new(true);
    pair.touch(2);
    assert_eq!(pair.fault(VISITOR, 0, Access::Read, 0).0, Outcome::Done);
    assert_eq!(pair.fault(VISITOR, 0, Access::Write, 0), (Outcome::Done, vec![]));
    assert_eq!((pair.state(HOME, 0), pair.state(VISITOR, 0)), (State::HomeExclusive, State::Dirty));
    assert_eq!(pair.fault(HOME, 0, Access::Write, 0).0, Outcome::Done);
    assert_eq!(pair.state(HOME, 0), State::HomeDirty, "the reader was found");
}

#[test]
fn pages_that_are_not_open_are_asked_for() {
    let mut pair = Pair::new(true);
    let (outcome, sent) = pair.fault(VISITOR, 0, Access::Read, 0);
    assert_eq!(outcome, Outcome::Wait, "nobody has touched the page");
    assert!(matches!(sent[..], [CsmMessage::Fetch { write: false, .. }]), "{sent:?}");
    let mut apart = Pair::new(false);
    apart.touch(1);
    assert_eq!(apart.fault(VISITOR, 0, Access::Read, 0).0, Outcome::Wait, "visits are not wanted");
}

#[test]
fn pages_are_brought_early_by_visits_too() {
    let mut pair = Pair::new(true);
    pair.touch(4);
    let ((), effects) = pair.call(VISITOR, |machine, env| machine.prefetch(Page(1), 2, Access::Read, env));
    assert_eq!(messages(effects), []);
    let states = [0, 1, 2, 3].map(|page| pair.state(VISITOR, page));
    assert_eq!(states, [State::Invalid, State::Shared, State::Shared, State::Invalid]);
}
