//! The chains of calls through which one thread has allocated.

use super::sites::Origin;
use crate::Caller;
use gondwana_interpose::{Call, DEPTH};
use std::ops::Range;

/// Sets of remembered chains. Programs often allocate through a function of their own, which many chains lead to: so
/// one set holds several.
const SETS: usize = 64;
const WAYS: usize = 8;

type Set = [Option<Box<Chain>>; WAYS];

/// A chain of calls, and where its return addresses are on the stack.
#[derive(Clone, Copy)]
struct Chain {
    caller: Caller,
    origin: Origin,
    others: usize,
    /// The calls around the first one: distances of their stack slots from its slot, and their return addresses.
    distances: [u32; DEPTH - 1],
    addresses: [usize; DEPTH - 1],
}

impl Chain {
    /// True if the calling thread, which was called by the same caller at the same stack address, is in the same
    /// chain.
    fn holds(&self) -> bool {
        let mut others = self.distances.iter().zip(&self.addresses).take(self.others);
        // SAFETY: the slots are on the thread's own stack, which `remember` checks, and above a frame in use.
        others.all(|(&distance, &address)| unsafe {
            *((self.caller.slot + distance as usize) as *const usize) == address
        })
    }
}

/// The chains that a thread has been in, by caller and stack address. Comparing the stack with a remembered chain
/// takes a hundredth of the time of unwinding it.
pub struct Stacks {
    sets: Box<[Set]>,
    /// The index of the entry of a full set that is replaced next.
    oldest: usize,
    /// The origin of allocations whose caller is unknown.
    unknown: Option<Origin>,
    /// Memory for the calls of one allocation.
    scratch: Vec<Call>,
}

/// None yet.
impl Default for Stacks {
    fn default() -> Self {
        let sets = vec![[const { None }; WAYS]; SETS].into();
        Self { sets, oldest: 0, unknown: None, scratch: Vec::with_capacity(DEPTH) }
    }
}

impl Stacks {
    /// The origin of an allocation by this caller, whose frame waits for the calling thread; `None` if the stack must
    /// be unwound.
    pub fn find(&self, caller: Caller) -> Option<Origin> {
        if caller == Caller::NONE {
            return self.unknown;
        }
        let mut chains = self.sets[set_of(caller)].iter().flatten();
        chains.find(|chain| chain.caller == caller && chain.holds()).map(|chain| chain.origin)
    }

    /// Memory for a chain of calls, which [`Stacks::remember`] takes back.
    pub fn scratch(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.scratch)
    }

    /// Remembers the origin of allocations through these calls, the first of which is the caller's. `stack` is the
    /// thread's own stack. Chains on other stacks are not remembered, because memory there may be unmapped later.
    /// Calls before the first one on this stack never change: for the thread that runs `main` they are the system's.
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
        let distance = |call: &Call| {
            let distance = call.slot.checked_sub(caller.slot).filter(|_| stack.contains(&call.slot))?;
            Some((u32::try_from(distance).ok()?, call.returns_to))
        };
        let mut own = calls.iter().map_while(distance);
        if own.next().is_none_or(|(distance, _)| distance != 0) {
            return;
        }
        let mut chain =
            Chain { caller, origin, others: 0, distances: [0; DEPTH - 1], addresses: [0; DEPTH - 1] };
        for (distance, returns_to) in own {
            chain.distances[chain.others] = distance;
            chain.addresses[chain.others] = returns_to;
            chain.others += 1;
        }
        let set = &mut self.sets[set_of(caller)];
        let way = set.iter().position(Option::is_none).unwrap_or_else(|| {
            self.oldest = (self.oldest + 1) % WAYS;
            self.oldest
        });
        // Reuses the memory of the entry that is replaced.
        match &mut set[way] {
            Some(before) => **before = chain,
            free => *free = Some(Box::new(chain)),
        }
    }
}

fn set_of(caller: Caller) -> usize {
    // Return addresses and stack pointers differ in their low bits; the lowest bits of a stack pointer are always 0.
    (caller.address ^ caller.address >> 8 ^ caller.slot >> 4 ^ caller.slot >> 12) % SETS
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
    fn chains_through_one_function_are_kept_apart() {
        let (mut words, range, calls) = stack();
        let mut stacks = Stacks::default();
        let caller = Caller { address: calls[0].returns_to, slot: calls[0].slot };
        for origin in (0_u32..).take(WAYS) {
            words[10] = 5 + origin as usize;
            assert_eq!(stacks.find(caller), None);
            let from = Call { returns_to: words[10], ..calls[1] };
            stacks.remember(caller, vec![calls[0], from, calls[2]], &range, origin);
        }
        for origin in (0_u32..).take(WAYS) {
            words[10] = 5 + origin as usize;
            assert_eq!(stacks.find(caller), Some(origin));
        }
    }

    #[test]
    fn calls_on_other_stacks_are_not_remembered() {
        let (_words, range, calls) = stack();
        let mut stacks = Stacks::default();
        let caller = Caller { address: calls[0].returns_to, slot: calls[0].slot };
        stacks.remember(caller, calls.clone(), &(calls[1].slot..range.end), 7);
        stacks.remember(caller, calls[1..].to_vec(), &range, 7);
        stacks.remember(caller, vec![], &range, 7);
        assert_eq!(stacks.find(caller), None);
    }

    #[test]
    fn calls_before_the_stack_are_not_looked_at() {
        let (mut words, range, calls) = stack();
        let mut stacks = Stacks::default();
        let caller = Caller { address: calls[0].returns_to, slot: calls[0].slot };
        stacks.remember(caller, calls.clone(), &(range.start..calls[2].slot), 7);
        words[40] = 1;
        assert_eq!(stacks.find(caller), Some(7));
        words[10] = 1;
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
