//! Random programs.

use crate::setup::{Op, Setup};
use gondwana_page::to_usize;

/// A small generator of pseudo-random numbers (SplitMix64): the same seed gives the same run everywhere.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        to_usize(self.next() % limit as u64)
    }

    /// A byte below `limit`, which is at most 256.
    fn byte_below(&mut self, limit: usize) -> u8 {
        u8::try_from(self.below(limit)).expect("a limit up to 256")
    }

    /// A node of `setup`.
    fn node(&mut self, setup: &Setup) -> u16 {
        u16::try_from(self.below(setup.nodes)).expect("nodes have numbers of 16 bits")
    }

    /// True with so many percent of chance.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A number of a page, or of pages, as operations have it.
fn operand(number: usize) -> u32 {
    u32::try_from(number).expect("pages have numbers of 32 bits")
}

/// Gives the threads of `setup` programs of some phases between barriers.
///
/// Each byte of a small sample belongs, for one phase, to one thread (which may read and write it), to everybody (who
/// may read it), or to a lock (whose holder may read and write it). Owners change from phase to phase and
/// neighbouring bytes have different owners, so pages are falsely shared all the time.
pub fn race_free(setup: &mut Setup, phases: usize, steps: usize, seed: u64) {
    let mut rng = Rng(seed);
    let span = setup.pages * setup.page_size;
    let sample: Vec<usize> = (0..setup.pages * 4)
        .map(|index| index / 4 * setup.page_size + rng.below(setup.page_size))
        .chain([span - 1])
        .collect();
    let threads = setup.threads.len();
    for _ in 0..phases {
        // Duplicates in the sample must have one owner: the first occurrence decides.
        let roll: Vec<usize> = sample.iter().map(|_| rng.below(threads + 1 + setup.locks)).collect();
        let owner = |address: usize| roll[sample.iter().position(|&a| a == address).expect("sampled")];
        for thread in 0..threads {
            let program = &mut setup.threads[thread].1;
            let mut held: Option<usize> = None;
            for _ in 0..steps {
                if setup.locks > 0 && rng.chance(30) {
                    match held.take() {
                        Some(lock) => program.push(Op::Unlock(lock)),
                        None => {
                            let lock = rng.below(setup.locks);
                            program.push(Op::Lock(lock));
                            held = Some(lock);
                        }
                    }
                    continue;
                }
                let address = sample[rng.below(sample.len())];
                let owner = owner(address);
                let mine = owner == thread || held.is_some_and(|lock| owner == threads + 1 + lock);
                if mine && rng.chance(60) {
                    // Few values, so that a byte often gets back a value it had: twins must not be fooled.
                    program.push(Op::Write(address, rng.byte_below(4)));
                } else if mine || owner == threads {
                    program.push(Op::Read(address));
                }
            }
            if let Some(lock) = held {
                program.push(Op::Unlock(lock));
            }
            program.push(Op::Barrier);
        }
    }
    for (_, program) in &mut setup.threads {
        program.extend(sample.iter().map(|&address| Op::Read(address)));
        program.push(Op::Barrier);
    }
}

/// Adds operations at any time of any threads.
fn insert_anywhere(setup: &mut Setup, times: usize, seed: u64, op: impl Fn(&mut Rng, &Setup) -> Op) {
    let mut rng = Rng(seed);
    for _ in 0..times {
        let op = op(&mut rng, setup);
        let thread = rng.below(setup.threads.len());
        let program = &mut setup.threads[thread].1;
        program.insert(rng.below(program.len() + 1), op);
    }
}

/// Lets threads decide where homes are to be, at any time and of any pages.
pub fn place_anywhere(setup: &mut Setup, times: usize, seed: u64) {
    insert_anywhere(setup, times, seed, |rng, setup| {
        let home = rng.chance(80).then(|| rng.node(setup));
        let first = rng.below(setup.pages);
        let count = 1 + rng.below(setup.pages - first);
        Op::Place { first: operand(first), count: operand(count), home, used: true }
    });
}

/// Lets nodes expose what they used alone, at any time.
pub fn expose_anywhere(setup: &mut Setup, times: usize, seed: u64) {
    insert_anywhere(setup, times, seed.rotate_left(32), |_, _| Op::Expose);
}

/// Lets nodes catch up with the others, at any time.
pub fn catch_up_anywhere(setup: &mut Setup, times: usize, seed: u64) {
    insert_anywhere(setup, times, seed.rotate_left(48), |_, _| Op::CatchUp);
}

/// Lets threads synchronise on any pages, at any time.
pub fn promote_anywhere(setup: &mut Setup, times: usize, seed: u64) {
    let promote = |rng: &mut Rng, setup: &Setup| Op::Promote(operand(rng.below(setup.pages)));
    insert_anywhere(setup, times, seed.rotate_left(16), promote);
}

/// Adds pages to those that the threads of `setup` use already: their homes are decided before anybody uses them.
/// Where pages are brought ahead, some have been brought by then. `more` adds to the programs.
pub fn with_new_pages(setup: &mut Setup, pages: usize, seed: u64, more: impl Fn(&mut Setup, u64)) {
    let mut rng = Rng(seed);
    for page in setup.pages..setup.pages + pages {
        let home = Some(rng.node(setup));
        let place = Op::Place { first: operand(page), count: 1, home, used: false };
        let thread = rng.below(setup.threads.len());
        setup.threads[thread].1.push(place);
    }
    for (_, program) in &mut setup.threads {
        program.push(Op::Barrier);
    }
    setup.pages += pages;
    more(setup, !seed);
}

/// Gives the threads of `setup` programs that read and write a few bytes in any order, with no synchronisation.
pub fn racy(setup: &mut Setup, steps: usize, seed: u64) {
    let mut rng = Rng(seed);
    let bytes = |rng: &mut Rng| rng.below(setup.pages) * setup.page_size + rng.below(2);
    let program = |rng: &mut Rng| {
        let op = |rng: &mut Rng| match rng.chance(50) {
            true => Op::Write(bytes(rng), rng.byte_below(256)),
            false => Op::Read(bytes(rng)),
        };
        (0..steps).map(|_| op(rng)).collect()
    };
    let programs: Vec<Vec<Op>> = setup.threads.iter().map(|_| program(&mut rng)).collect();
    for (thread, program) in setup.threads.iter_mut().zip(programs) {
        thread.1.extend(program);
    }
}

/// A small program without data races for each thread: `sections` times one or two accesses to a byte under its
/// lock, sometimes followed by an access to a byte of the thread's own. Pages have two bytes; byte `b` belongs to
/// lock `b % 2` if `b < 2 * (pages - 1)`, and the last page holds the bytes of the first two threads.
pub fn sections(setup: &mut Setup, sections: usize, seed: u64) {
    let mut rng = Rng(seed);
    let shared = 2 * (setup.pages - 1).max(1);
    for index in 0..setup.threads.len() {
        let program = &mut setup.threads[index].1;
        for _ in 0..sections {
            let byte = rng.below(shared);
            let value = rng.byte_below(3);
            program.push(Op::Lock(byte % 2));
            match rng.below(4) {
                0 => program.extend([Op::Read(byte), Op::Write(byte, value)]),
                1 => program.push(Op::Read(byte)),
                _ => program.push(Op::Write(byte, value)),
            }
            program.push(Op::Unlock(byte % 2));
            if setup.pages > 1 && index < 2 && rng.chance(40) {
                let own = 2 * (setup.pages - 1) + index;
                program.push(if rng.chance(60) { Op::Write(own, value) } else { Op::Read(own) });
            }
        }
    }
}
