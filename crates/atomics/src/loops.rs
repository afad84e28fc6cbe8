//! The loops of a function, the outer and the inner ones.

use crate::flow::Flow;
use std::collections::BTreeSet;

/// All loops of a function: for each the indices of its instructions, in ascending order. An inner loop is there beside those around it.
pub(crate) fn loops(flow: &Flow) -> Vec<Vec<usize>> {
    let count = flow.instructions.len();
    // Most functions have no way back.
    if (0..count).all(|index| flow.followers(index).iter().all(|&follower| follower > index)) {
        return vec![];
    }
    let mut found = vec![];
    let mut inside = vec![true; count];
    let mut search = Components::new(count);
    let mut next = search.of(flow, &(0..count).collect::<Vec<_>>(), &inside);
    inside.fill(false);
    while let Some(members) = next.pop() {
        members.iter().for_each(|&member| inside[member] = true);
        // What control comes in by is on each way round; without it only inner loops are left.
        let is_entry =
            |&member: &usize| member == 0 || flow.leaders(member).iter().any(|&leader| !inside[leader]);
        let mut entries: Vec<usize> = members.iter().copied().filter(is_entry).collect();
        if entries.is_empty() {
            entries.push(members[0]);
        }
        if let [entry] = entries[..] {
            found.extend(sharing(flow, entry, &members, &inside));
        }
        entries.iter().for_each(|&entry| inside[entry] = false);
        let rest: Vec<usize> = members.iter().copied().filter(|&member| inside[member]).collect();
        next.extend(search.of(flow, &rest, &inside));
        members.iter().for_each(|&member| inside[member] = false);
        found.push(members);
    }
    found
}

/// The loops that share their entry: one for each way back to it, if there are several. `inside` are the `members` of all of them.
fn sharing(flow: &Flow, entry: usize, members: &[usize], inside: &[bool]) -> Vec<Vec<usize>> {
    let tails: Vec<usize> = flow.leaders(entry).iter().copied().filter(|&leader| inside[leader]).collect();
    if tails.len() < 2 {
        return vec![];
    }
    let around = |tail: usize| {
        let mut seen = BTreeSet::from([entry]);
        let mut next = vec![tail];
        while let Some(at) = next.pop() {
            if seen.insert(at) {
                next.extend(flow.leaders(at).iter().filter(|&&leader| inside[leader]));
            }
        }
        seen.into_iter().collect()
    };
    tails.into_iter().map(around).filter(|around: &Vec<usize>| around.len() < members.len()).collect()
}

/// Tarjan's search for strongly connected components, without recursion.
struct Components {
    /// When an instruction was found, from 1 on; 0 if it was not.
    order: Vec<usize>,
    low: Vec<usize>,
    on_stack: Vec<bool>,
}

impl Components {
    fn new(count: usize) -> Self {
        Self { order: vec![0; count], low: vec![0; count], on_stack: vec![false; count] }
    }

    /// The components of `members`, which are those of the instructions `inside`, in which control goes round.
    fn of(&mut self, flow: &Flow, members: &[usize], inside: &[bool]) -> Vec<Vec<usize>> {
        let (mut found, mut stack, mut time) = (vec![], vec![], 0);
        members.iter().for_each(|&member| self.order[member] = 0);
        for &root in members {
            if self.order[root] != 0 {
                continue;
            }
            let mut path = vec![(root, 0)];
            while let Some((at, edge)) = path.pop() {
                if edge == 0 {
                    time += 1;
                    (self.order[at], self.low[at], self.on_stack[at]) = (time, time, true);
                    stack.push(at);
                }
                if let Some(&to) = flow.followers(at).get(edge) {
                    path.push((at, edge + 1));
                    if inside[to] && self.order[to] == 0 {
                        path.push((to, 0));
                    } else if inside[to] && self.on_stack[to] {
                        self.low[at] = self.low[at].min(self.order[to]);
                    }
                    continue;
                }
                if let Some(&(above, _)) = path.last() {
                    self.low[above] = self.low[above].min(self.low[at]);
                }
                if self.low[at] == self.order[at] {
                    let from = stack.iter().rposition(|&member| member == at).expect("it is on the stack");
                    let mut component = stack.split_off(from);
                    component.iter().for_each(|&member| self.on_stack[member] = false);
                    if component.len() > 1 || flow.followers(at).contains(&at) {
                        component.sort_unstable();
                        found.push(component);
                    }
                }
            }
        }
        found
    }
}
