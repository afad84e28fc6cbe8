//! Recursive functions: blocks that they allocate at different depths have one site.

use crate::names::Names;
use std::collections::HashMap;

/// A chain of calls without recursion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Return addresses, innermost first. Of the calls of one function only the innermost is kept, and the calls
    /// between it and the outermost are dropped.
    pub(crate) calls: Vec<u64>,
    /// The indices, in ascending order, of calls in a function that has called itself: the next call is not always
    /// its caller.
    pub(crate) recursive: Vec<usize>,
}

/// The chains of some stacks of return addresses, the innermost first.
///
/// The beginning of a deep recursion is not recorded. Such a stack counts as one whose beginning is recorded, if that
/// is the only one that it can have.
pub(crate) fn without_recursion<'a>(
    stacks: impl Iterator<Item = &'a [u64]>,
    names: &dyn Names,
) -> HashMap<&'a [u64], Chain> {
    let mut functions = Functions { names, known: HashMap::new() };
    let mut chains: HashMap<&[u64], Chain> = HashMap::new();
    for stack in stacks {
        chains.entry(stack).or_insert_with(|| functions.chain(stack));
    }
    let beginnings = Beginnings::of(chains.values().map(|chain| chain.calls.clone()).collect());
    for chain in chains.values_mut().filter(|chain| !chain.recursive.is_empty()) {
        if let Some(longest) = beginnings.longest(&chain.calls) {
            chain.calls = longest.to_vec();
        }
    }
    chains
}

/// The identity of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    /// Its first instruction.
    At(u64),
    /// The function is unknown, but a call that occurs twice is in one that has called itself.
    Around(u64),
}

/// The functions of return addresses, each queried once.
struct Functions<'a> {
    names: &'a dyn Names,
    known: HashMap<u64, Function>,
}

impl Functions<'_> {
    fn chain(&mut self, stack: &[u64]) -> Chain {
        let functions: Vec<Function> = stack.iter().map(|&call| self.of(call)).collect();
        let mut chain = Chain::default();
        let mut at = 0;
        while at < stack.len() {
            let outermost = functions.iter().rposition(|other| *other == functions[at]).unwrap_or(at);
            if outermost > at {
                chain.recursive.push(chain.calls.len());
            }
            chain.calls.push(stack[at]);
            at = outermost + 1;
        }
        // Of functions that call each other, any may be the last one recorded.
        let has_begun = functions.split_last().is_none_or(|(last, others)| !others.contains(last));
        if let Some(last) = chain.recursive.last().filter(|_| !has_begun) {
            chain.calls.truncate(last + 1);
        }
        chain
    }

    fn of(&mut self, returns_to: u64) -> Function {
        *self.known.entry(returns_to).or_insert_with(|| {
            let call = returns_to.wrapping_sub(1);
            // The outermost is the function itself; the others are inlined into it.
            match self.names.code(call).pop().filter(|code| !code.function.is_empty()) {
                Some(code) => Function::At(call.wrapping_sub(code.offset)),
                None => Function::Around(returns_to),
            }
        })
    }
}

/// Chains that are the beginnings of others.
struct Beginnings {
    /// In ascending order, so that those that begin with one are behind it.
    chains: Vec<Vec<u64>>,
    /// For each chain the longest one that begins with it, if all others that do are beginnings of that one.
    longest: Vec<Option<usize>>,
}

impl Beginnings {
    fn of(mut chains: Vec<Vec<u64>>) -> Self {
        chains.sort_unstable();
        chains.dedup();
        let mut longest = vec![None; chains.len()];
        // Behind the last that begins with this one.
        let mut ends = vec![chains.len(); chains.len()];
        for index in (0..chains.len()).rev() {
            let next = index + 1;
            let same = chains[next..].partition_point(|other| other.starts_with(&chains[index]));
            ends[index] = next + same;
            longest[index] = match same {
                0 => Some(index),
                _ if ends[next] == ends[index] => longest[next],
                _ => None,
            };
        }
        Self { chains, longest }
    }

    fn longest(&self, chain: &[u64]) -> Option<&[u64]> {
        let index = self.chains.binary_search_by(|other| other[..].cmp(chain)).ok()?;
        self.longest[index].map(|longest| &self.chains[longest][..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{Code, NoNames};

    /// Functions of 16 bytes, called by the number of the first; below 16 nobody knows.
    struct Sixteens;

    impl Names for Sixteens {
        fn code(&self, address: u64) -> Vec<Code> {
            let function = if address < 16 { String::new() } else { format!("f{}", address / 16) };
            let inlined = Code { function: "inlined".into(), ..Code::default() };
            vec![inlined, Code { function, offset: address % 16, ..Code::default() }]
        }
    }

    /// The chains of stacks that were seen together.
    fn of(names: &dyn Names, stacks: &[&[u64]]) -> Vec<(Vec<u64>, Vec<usize>)> {
        let chains = without_recursion(stacks.iter().copied(), names);
        let chain = |stack: &&[u64]| (chains[stack].calls.clone(), chains[stack].recursive.clone());
        stacks.iter().map(chain).collect()
    }

    fn chain(calls: &[u64], recursive: &[usize]) -> (Vec<u64>, Vec<usize>) {
        (calls.to_vec(), recursive.to_vec())
    }

    #[test]
    fn depth_makes_no_difference() {
        // A function with two calls of itself, which f9 calls.
        let found =
            of(&Sixteens, &[&[0x21, 0x91], &[0x21, 0x25, 0x91], &[0x21, 0x28, 0x25, 0x28, 0x91], &[]]);
        let deep = chain(&[0x21, 0x91], &[0]);
        assert_eq!(found, [chain(&[0x21, 0x91], &[]), deep.clone(), deep, chain(&[], &[])]);
        // It allocates through another function, which therefore has one caller only.
        assert_eq!(of(&Sixteens, &[&[0x11, 0x21, 0x25, 0x91]]), [chain(&[0x11, 0x21, 0x91], &[1])]);
        // Two that call each other, the one and the other first.
        let each = of(&Sixteens, &[&[0x21, 0x31, 0x21, 0x31, 0x91], &[0x21, 0x31, 0x21, 0x91]]);
        assert_eq!(each, [chain(&[0x21, 0x31, 0x91], &[0]), chain(&[0x21, 0x91], &[0])]);
    }

    #[test]
    fn functions_without_names_are_known_by_calls_that_are_there_twice() {
        for names in [&Sixteens as &dyn Names, &NoNames] {
            let found = of(names, &[&[0x1, 0x5, 0x5, 0x5, 0x9], &[0x1, 0x5, 0x9]]);
            assert_eq!(found, [chain(&[0x1, 0x5, 0x9], &[1]), chain(&[0x1, 0x5, 0x9], &[])]);
        }
    }

    #[test]
    fn where_deep_recursion_began_is_what_is_known_of_less_deep() {
        let deep = [0x21, 0x25, 0x28, 0x25];
        assert_eq!(of(&Sixteens, &[&deep]), [chain(&[0x21], &[0])]);
        // Some of the calls around are known, or all.
        let some: &[u64] = &[0x21, 0x25, 0x28, 0x81];
        let all: &[u64] = &[0x21, 0x25, 0x81, 0x91];
        let whole = chain(&[0x21, 0x81, 0x91], &[0]);
        assert_eq!(of(&Sixteens, &[&deep, some, all]), [whole.clone(), whole.clone(), whole]);
        // It can have begun in f8 or in f7.
        let other: &[u64] = &[0x21, 0x71];
        assert_eq!(of(&Sixteens, &[&deep, all, other])[0], chain(&[0x21], &[0]));
        // Of two that call each other it does not matter which one was the last.
        let each =
            of(&Sixteens, &[&[0x21, 0x31, 0x21, 0x31], &[0x21, 0x31, 0x21], &[0x21, 0x31, 0x21, 0x91]]);
        assert_eq!(each, vec![chain(&[0x21, 0x91], &[0]); 3]);
    }
}
