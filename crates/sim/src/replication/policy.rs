//! What the system's daemon decides: pages with many excess misses move to the node that misses, and are replicated there if
//! moving has not helped (WildFire, section 3).

use gondwana_coherence::directory::Node;

/// A page to which a node has had excess misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub page: u32,
    pub node: Node,
    pub misses: u64,
    /// Where it is, and how often it has moved.
    pub home: Node,
    pub moves: u64,
}

/// A node's memory, in pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    /// How many fit.
    pub limit: u64,
    /// How many it is home of.
    pub homed: u64,
    /// Its replicas, with the misses that they have served lately.
    pub replicas: Vec<(u32, u64)>,
}

/// Something to do with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The page moves to the node.
    Migrate(u32, Node),
    /// The node gets a replica.
    Replicate(u32, Node),
    /// The node gives its replica up.
    GiveUp(u32, Node),
}

/// The user's part of the policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// Excess misses of a node to a page, from which on something is done.
    pub threshold: u64,
    /// How often a page moves before it is replicated.
    pub migrations: u64,
    /// Pages are replicated.
    pub replicates: bool,
    /// The most pages that move or are replicated at a time.
    pub most: u64,
}

impl Room {
    fn is_full(&self) -> bool {
        self.homed + self.replicas.len() as u64 >= self.limit
    }

    /// Takes the replica out that has served the fewest misses, fewer than `gain`.
    fn give_up(&mut self, gain: u64) -> Option<u32> {
        let least = self.replicas.iter().enumerate().min_by_key(|(_, (page, served))| (*served, *page));
        let (at, _) = least.filter(|(_, (_, served))| *served < gain)?;
        Some(self.replicas.remove(at).0)
    }
}

impl Policy {
    /// Decides, given the rooms by node.
    pub(crate) fn decide(&self, mut candidates: Vec<Candidate>, mut rooms: Vec<Room>) -> Vec<Action> {
        let mut actions = vec![];
        // Memory that the program has taken meanwhile is replicas' no longer.
        for (node, room) in (0..).zip(&mut rooms) {
            while room.homed + room.replicas.len() as u64 > room.limit
                && let Some(page) = room.give_up(u64::MAX)
            {
                actions.push(Action::GiveUp(page, node));
            }
        }
        candidates.retain(|candidate| candidate.misses >= self.threshold);
        candidates.sort_by_key(|of| (u64::MAX - of.misses, of.page, of.node));
        let (mut moved, mut done) = (vec![], 0);
        for Candidate { page, node, misses, home, moves } in candidates {
            let moves_on = moves < self.migrations;
            if done == self.most || moved.contains(&page) || !moves_on && !self.replicates {
                continue;
            }
            let room = &mut rooms[usize::from(node)];
            if room.is_full() {
                match room.give_up(misses) {
                    Some(page) => actions.push(Action::GiveUp(page, node)),
                    None => continue,
                }
            }
            done += 1;
            if moves_on {
                moved.push(page);
                room.homed += 1;
                rooms[usize::from(home)].homed -= 1;
                rooms.iter_mut().for_each(|room| room.replicas.retain(|(replica, _)| *replica != page));
                actions.push(Action::Migrate(page, node));
            } else {
                // A new one has as good a claim as its misses.
                room.replicas.push((page, misses));
                actions.push(Action::Replicate(page, node));
            }
        }
        actions
    }
}

#[cfg(test)]
mod tests {
    use super::Action::{GiveUp, Migrate, Replicate};
    use super::*;

    const POLICY: Policy = Policy { threshold: 10, migrations: 1, replicates: true, most: 8 };

    fn candidate(page: u32, node: Node, misses: u64, moves: u64) -> Candidate {
        Candidate { page, node, misses, home: 0, moves }
    }

    fn rooms(limit: u64, replicas: [&[(u32, u64)]; 3]) -> Vec<Room> {
        replicas.map(|replicas| Room { limit, homed: 2, replicas: replicas.to_vec() }).to_vec()
    }

    #[test]
    fn a_page_moves_first_and_is_replicated_then() {
        let candidates = vec![
            candidate(5, 1, 20, 0),
            candidate(5, 2, 30, 0),
            candidate(6, 1, 12, 1),
            candidate(6, 2, 40, 1),
            candidate(7, 1, 9, 0),
        ];
        let free = || rooms(100, [&[], &[], &[]]);
        let actions = POLICY.decide(candidates.clone(), free());
        assert_eq!(
            actions,
            [Replicate(6, 2), Migrate(5, 2), Replicate(6, 1)],
            "to the node that misses most"
        );
        let only_moves = Policy { replicates: false, ..POLICY };
        assert_eq!(only_moves.decide(candidates.clone(), free()), [Migrate(5, 2)]);
        let at_once = Policy { migrations: 0, most: 2, ..POLICY };
        assert_eq!(at_once.decide(candidates, free()), [Replicate(6, 2), Replicate(5, 2)]);
    }

    #[test]
    fn replicas_make_room_for_those_that_serve_more() {
        let full = rooms(4, [&[], &[(8, 11), (9, 30)], &[]]);
        let actions = POLICY.decide(vec![candidate(5, 1, 12, 1), candidate(6, 1, 12, 1)], full.clone());
        assert_eq!(actions, [GiveUp(8, 1), Replicate(5, 1)], "5 and 9 serve as many or more than 6 would");
        let actions = POLICY.decide(vec![candidate(5, 1, 11, 0)], full.clone());
        assert_eq!(actions, [], "it would serve no more than page 8 does");
        let actions = POLICY.decide(vec![candidate(5, 1, 50, 0), candidate(6, 1, 40, 0)], full);
        assert_eq!(actions, [GiveUp(8, 1), Migrate(5, 1), GiveUp(9, 1), Migrate(6, 1)]);
    }

    #[test]
    fn memory_of_the_program_comes_before_replicas() {
        let over = rooms(3, [&[], &[(8, 11), (9, 5), (7, 5)], &[(7, 0)]]);
        assert_eq!(POLICY.decide(vec![], over), [GiveUp(7, 1), GiveUp(9, 1)]);
        let none = rooms(1, [&[], &[], &[]]);
        assert_eq!(POLICY.decide(vec![candidate(5, 1, 50, 0)], none), []);
    }
}
