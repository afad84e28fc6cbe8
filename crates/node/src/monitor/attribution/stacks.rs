//! What one thread knows of the chains of calls that it has allocated by.

use super::calls::{Call, DEPTH};
use super::sites::Origin;
use crate::Caller;
use std::ops::Range;

/// Chains that a thread remembers.
const CHAINS: usize = 256;

/// A chain of calls, and where its return addresses are on the stack.
#[derive(Clone, Copy)]
struct Chain {
    caller: Caller,
    origin: Origin,
    others: usize,
    /// The calls around the first one: distances of their return addresses from its, and the addresses.
    distances: [u32; DEPTH - 1],
    addresses: [usize; DEPTH - 1],
}

impl Chain {
    /// True if the calling thread, which is in a call by the same caller at the same place of its stack, is in the same
    /// chain of calls.
    fn holds(&self) -> bool {
        let others = self.distances.iter().zip(&self.addresses).take(self.others);
        // SAFETY: the places are of the thread's own stack, as `remember` has made sure, and above a frame in use.
        others.rev().all(|(&distance, &address)| unsafe {
            *((self.caller.slot + distance as usize) as *const usize) == address
        })
    }
}

/// The chains of calls that a thread has been in, by where it stood on its stack. Whether it is in one again is read off
/// the stack, which takes a hundredth of the time of finding it out anew.
pub struct Stacks {
    chains: Box<[Option<Box<Chain>>]>,
    /// Where an allocation counts whose caller is not known.
    unknown: Option<Origin>,
    /// Room for the calls of one allocation.
    scratch: Vec<Call>,
}

/// None yet.
impl Default for Stacks {
    fn default() -> Self {
        Self { chains: vec![None; CHAINS].into(), unknown: None, scratch: Vec::with_capacity(DEPTH) }
    }
}

impl Stacks {
    /// Where an allocation by this caller, who waits for the calling thread, counts; `None` if that has to be found out.
    pub fn find(&self, caller: Caller) -> Option<Origin> {
        if caller == Caller::NONE {
            return self.unknown;
        }
        let chain = self.chains[place(caller)].as_ref()?;
        (chain.caller == caller && chain.holds()).then_some(chain.origin)
    }

    /// Room for a chain of calls, until [`Stacks::remember`] gets it back.
    pub fn scratch(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.scratch)
    }

    /// Remembers where allocations by these calls, which begin with that of the caller, count. `stack` is the thread's own
    /// stack: calls elsewhere are not remembered, because what else is there may be unmapped.
    pub fn remember(&mut self, caller: Caller, calls: Vec<Call>, stack: &Range<usize>, origin: Origin) {
        self.keep(caller, &calls, stack, origin);
        self.scratch = calls;
        self.scratch.clear();
    }

    fn keep(&mut self, caller: Caller, calls: &[Call], stack: &Range<usize>, origin: Origin) {
        if caller == Caller::NONE {
            self.unknown = Some(origin);
            return;
        }
        let [first, others @ ..] = calls else { return };
        let is_own = |call: &Call| stack.contains(&call.slot) && call.slot - caller.slot <= u32::MAX as usize;
        if first.slot != caller.slot || !calls.iter().all(is_own) {
            return;
        }
        let mut chain = Chain {
            caller,
            origin,
            others: others.len(),
            distances: [0; DEPTH - 1],
            addresses: [0; DEPTH - 1],
        };
        for (index, call) in others.iter().enumerate() {
            chain.distances[index] = (call.slot - caller.slot) as u32;
            chain.addresses[index] = call.returns_to;
        }
        // In the memory of the one that was there before, if there was one.
        match &mut self.chains[place(caller)] {
            Some(before) => **before = chain,
            free => *free = Some(Box::new(chain)),
        }
    }
}

fn place(caller: Caller) -> usize {
    // Return addresses and stack pointers differ in their low bits; the lowest of a stack pointer are always 0.
    (caller.address ^ caller.address >> 8 ^ caller.slot >> 4 ^ caller.slot >> 12) % CHAINS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack with a chain of calls on it.
    fn stack() -> (Vec<usize>, Range<usize>, Vec<Call>) {
        let words: Vec<usize> = (0..64).map(|word| word * 1000).collect();
        let start = words.as_ptr() as usize;
        let calls = [3, 10, 40].map(|word| Call { returns_to: words[word], slot: start + word * 8 });
        (words, start..start + 64 * 8, calls.to_vec())
    }

    #[test]
    fn a_chain_is_known_again_only_if_all_of_it_is_there() {
        let (mut words, range, calls) = stack();
        let mut stacks = Stacks::default();
        let caller = Caller { address: calls[0].returns_to, slot: calls[0].slot };
        assert_eq!(stacks.find(caller), None);
        stacks.remember(caller, calls.clone(), &range, 7);
        assert_eq!(stacks.find(caller), Some(7));
        for word in [10, 40] {
            let before = std::mem::replace(&mut words[word], 1);
            assert_eq!(stacks.find(caller), None, "another call at {word}");
            words[word] = before;
        }
        words[20] = 1;
        assert_eq!(stacks.find(caller), Some(7));
        assert_eq!(stacks.find(Caller { address: 5, ..caller }), None);
    }

    #[test]
    fn calls_on_other_stacks_are_not_remembered() {
        let (_words, range, calls) = stack();
        let mut stacks = Stacks::default();
        let caller = Caller { address: calls[0].returns_to, slot: calls[0].slot };
        stacks.remember(caller, calls.clone(), &(range.start..calls[2].slot), 7);
        stacks.remember(caller, calls[1..].to_vec(), &range, 7);
        stacks.remember(caller, vec![], &range, 7);
        assert_eq!(stacks.find(caller), None);
    }

    #[test]
    fn who_is_not_known_is_remembered_as_such() {
        let mut stacks = Stacks::default();
        assert_eq!(stacks.find(Caller::NONE), None);
        stacks.remember(Caller::NONE, vec![], &(0..0), 9);
        assert_eq!(stacks.find(Caller::NONE), Some(9));
    }
}
