//! What an access does that the fast path cannot: caches, the node's bus, and from there the other nodes.

use crate::Time;
use crate::counters::{Cause, Supply};
use crate::lines::{NOBODY, Place};
use crate::machine::{Kind, Machine};
use crate::sharing::bits;
use gondwana_coherence::directory::{Node, Request, State};

impl Machine {
    /// Makes an access of `width` bytes, which may cross lines. The processor's time passes.
    pub fn access(&mut self, processor: usize, address: u64, width: u64, kind: Kind) {
        let last = address + width.max(1) - 1;
        for line in address >> self.l1_shift..=last >> self.l1_shift {
            let start = address.max(line << self.l1_shift);
            let end = last.min(((line + 1) << self.l1_shift) - 1);
            self.access_line(processor, start, end - start + 1, kind);
        }
    }

    /// Makes an access if it needs no bus: the processor's caches have what it takes. False: nothing was done.
    ///
    /// But the translation was made, which needs no bus either.
    #[must_use]
    pub fn access_private(&mut self, processor: usize, address: u64, width: u64, kind: Kind) -> bool {
        let last = address + width.max(1) - 1;
        if address >> self.l1_shift == last >> self.l1_shift {
            return self.access_line_private(processor, address, width, kind);
        }
        self.translate(processor, address);
        self.translate(processor, last);
        let mut lines = address >> self.line_shift..=last >> self.line_shift;
        let private = lines.all(|line| self.is_private(processor, line, kind));
        if private {
            self.access(processor, address, width, kind);
        }
        private
    }

    /// [`Machine::access_private`] within one line of the first cache.
    fn access_line_private(&mut self, processor: usize, address: u64, width: u64, kind: Kind) -> bool {
        if self.finds_in_l1(processor, address, width, kind) {
            return true;
        }
        let line = address >> self.line_shift;
        let private = self.is_private(processor, line, kind);
        if private {
            self.access_missed(processor, address, width, kind);
        } else if let Some(colour) = self.lines.prefetch(line)
            && let Some(victim) = self.l2[processor].victim(line, colour)
        {
            // The processor probably waits for its turn now.
            self.lines.prefetch(victim);
        }
        private
    }

    /// True if a processor's second cache has what an access to this line takes.
    fn is_private(&self, processor: usize, line: u64, kind: Kind) -> bool {
        let least = if kind == Kind::Write { State::Modified } else { State::Shared };
        let colour = self.lines.colour_of(line);
        colour.is_some_and(|colour| self.l2[processor].state(line, colour) >= least)
    }

    /// Counts an access to memory that the machine does not have. It takes the time of a hit.
    pub fn access_outside(&mut self, processor: usize, kind: Kind) {
        self.ports[processor].step();
        self.counters[processor].outside += 1;
        if kind == Kind::Write {
            self.counters[processor].writes += 1;
        }
    }

    /// An access within one line of the first cache.
    fn access_line(&mut self, processor: usize, address: u64, width: u64, kind: Kind) {
        if !self.finds_in_l1(processor, address, width, kind) {
            self.access_missed(processor, address, width, kind);
        }
    }

    /// Makes an access within one line of the first cache if it hits there, perhaps after its page was looked up.
    fn finds_in_l1(&mut self, processor: usize, address: u64, width: u64, kind: Kind) -> bool {
        self.hit_l1(processor, address, width, kind)
            || self.translate(processor, address) && self.hit_l1(processor, address, width, kind)
    }

    /// Makes an access within one line of the first cache that has missed there.
    fn access_missed(&mut self, processor: usize, address: u64, width: u64, kind: Kind) {
        let write = kind == Kind::Write;
        let port = &mut self.ports[processor];
        port.step();
        let (l1_line, words) = (port.l1.line_of(address), port.l1.words(address, width));
        self.counters[processor].writes += u64::from(write);
        self.miss_l1(processor, address, words, write);
        if write {
            self.ports[processor].l1.mark(l1_line, words);
        }
    }

    /// Looks the page of an address up, which is in the translation buffer afterwards; lines of the first cache are awake
    /// only if theirs is. True if that has woken the address's line.
    fn translate(&mut self, processor: usize, address: u64) -> bool {
        let Some(tlb) = self.tlbs.get_mut(processor) else { return false };
        let port = &mut self.ports[processor];
        if let Some(miss) = tlb.look_up(address) {
            if let Some(gone) = miss.gone {
                port.l1.sleep(gone, tlb.shift());
            }
            let counters = &mut self.counters[processor];
            counters.tlb_misses[usize::from(miss.again)] += 1;
            counters.tlb_stalled += miss.time;
            port.pass(miss.time);
        }
        port.l1.wake(port.l1.line_of(address))
    }

    /// Makes an access within one line of the first cache if it hits there. False: nothing was done.
    fn hit_l1(&mut self, processor: usize, address: u64, width: u64, kind: Kind) -> bool {
        let write = kind == Kind::Write;
        let port = &mut self.ports[processor];
        let line = port.l1.line_of(address);
        if !port.l1.touch(line, write) {
            return false;
        }
        port.step();
        if write {
            self.counters[processor].writes += 1;
            let words = port.l1.words(address, width);
            port.l1.mark(line, words);
        }
        true
    }

    fn miss_l1(&mut self, processor: usize, address: u64, words: u64, write: bool) {
        self.counters[processor].l1_misses += 1;
        let now = self.ports[processor].now();
        let line = address >> self.line_shift;
        let node = self.node_of[processor];
        let colour = self.lines.colour_of(line);
        let state = colour.map_or(State::Invalid, |colour| self.l2[processor].touch(line, colour));
        let enough = if write { state == State::Modified } else { state != State::Invalid };
        let done = if enough {
            now + self.times.l2
        } else {
            let (placement, placed) = (&self.placement, &self.placed);
            let place = self.lines.find(line, |page| Self::place(placement, placed, page, node));
            self.watch_begin(node, line, place);
            let done = if state == State::Invalid {
                self.miss_l2(processor, line, place, words, write, now)
            } else {
                self.upgrade(processor, line, place, now)
            };
            self.watch_access(node, address, write);
            done
        };
        let port = &mut self.ports[processor];
        let l1_line = port.l1.line_of(address);
        // What is written has become modified; what is read has not, unless it was.
        let gone = port.l1.fill(l1_line, write || state == State::Modified);
        port.pass(done - now);
        if let Some((gone, words)) = gone.filter(|(_, words)| *words != 0) {
            self.note_words(processor, gone >> (self.line_shift - self.l1_shift), words);
        }
    }

    /// A line that the processor does not have. Returns when it has.
    fn miss_l2(
        &mut self,
        processor: usize,
        line: u64,
        place: Place,
        words: u64,
        write: bool,
        now: Time,
    ) -> Time {
        let node = self.node_of[processor];
        let (done, supply) = if write {
            self.own(processor, line, place, false, now)
        } else {
            self.read(processor, line, place, now)
        };
        if supply == Supply::LocalMemory && self.lines.home(place) == node {
            self.watch_home(node, line, if write { |used| &mut used.writes } else { |used| &mut used.reads });
        }
        let state = if write { State::Modified } else { State::Shared };
        if let Some(victim) = self.l2[processor].add(line, self.lines.colour(place), state) {
            self.evict(processor, victim.line, victim.state, done);
        }
        let number = u8::try_from(processor).expect("machines are checked");
        let entry = self.lines.get(place);
        let sharing = self.sharing.give_back(&mut entry.losses, number, words);
        let cause = match sharing {
            _ if entry.had >> processor & 1 == 0 => Cause::Cold,
            Some(true) => Cause::TrueSharing,
            Some(false) => Cause::FalseSharing,
            None => Cause::Replaced,
        };
        entry.had |= 1 << processor;
        entry.holders |= 1 << processor;
        if write {
            entry.owner = number;
        }
        let counters = &mut self.counters[processor];
        counters.l2_misses[cause as usize] += 1;
        counters.supplied[supply as usize] += 1;
        counters.stalled[supply as usize] += done - now;
        done
    }

    /// A line that the processor has, but may not write.
    fn upgrade(&mut self, processor: usize, line: u64, place: Place, now: Time) -> Time {
        let node = self.node_of[processor];
        let remote = self.lines.block(place).entry.state(node) != State::Modified;
        let (done, _) = self.own(processor, line, place, true, now);
        self.l2[processor].change(line, self.lines.colour(place), State::Modified);
        self.lines.get(place).owner = u8::try_from(processor).expect("machines are checked");
        let counters = &mut self.counters[processor];
        counters.upgrades += 1;
        counters.remote_upgrades += u64::from(remote);
        counters.upgrade_stalled += done - now;
        done
    }

    /// The bus of a node orders a request; returns when the snoop result is there.
    pub(crate) fn snoop(&mut self, node: Node, at: Time) -> Time {
        let bus = &mut self.nodes[usize::from(node)].bus;
        bus.reserve(at, self.times.bus_busy) + self.times.bus
    }

    /// The memory of a node delivers or takes a line.
    pub(crate) fn memory(&mut self, node: Node, line: u64, at: Time) -> Time {
        let banks = &mut self.nodes[usize::from(node)].banks;
        let bank = usize::try_from(line % banks.len() as u64).expect("an index");
        banks[bank].reserve(at, self.times.memory_busy) + self.times.memory
    }

    /// The processor of a node that supplies a line, if one does.
    pub(crate) fn supplier(&mut self, node: Node, place: Place) -> Option<usize> {
        let owner = self.lines.get(place).owner;
        let there = owner != NOBODY && self.node_of[usize::from(owner)] == node;
        there.then_some(usize::from(owner))
    }

    fn read(&mut self, processor: usize, line: u64, place: Place, now: Time) -> (Time, Supply) {
        let node = self.node_of[processor];
        let snooped = self.snoop(node, now + self.times.l2);
        if let Some(owner) = self.supplier(node, place) {
            self.demote(owner, line, place);
            return (snooped + self.times.cache_supply, Supply::LocalCache);
        }
        if self.lines.home(place) == node && self.lines.block(place).entry.state(node) != State::Invalid {
            return (self.memory(node, line, snooped), Supply::LocalMemory);
        }
        if self.has_replica(node, place) {
            self.count_served(node, place);
            return (self.memory(node, line, snooped), Supply::LocalMemory);
        }
        if self.use_far(node, line, place) {
            return (self.far_memory(node, snooped), Supply::FarCache);
        }
        self.count_far_miss(processor, place, false);
        self.count_fetch(node, place);
        let answer = self.request(node, line, place, Request::Read, snooped);
        self.fill_far(processor, line, place, answer.0);
        answer
    }

    /// Makes the processor the only one with a line, which it has already or not.
    fn own(&mut self, processor: usize, line: u64, place: Place, has: bool, now: Time) -> (Time, Supply) {
        let node = self.node_of[processor];
        let snooped = self.snoop(node, now + self.times.l2);
        let entry = self.lines.block(place).entry;
        let result = if entry.state(node) == State::Modified {
            match self.supplier(node, place) {
                _ if has => (snooped, Supply::LocalCache),
                Some(_) => (snooped + self.times.cache_supply, Supply::LocalCache),
                None if self.use_far(node, line, place) => (self.far_memory(node, snooped), Supply::FarCache),
                None => {
                    if self.has_replica(node, place) {
                        self.count_served(node, place);
                    }
                    (self.memory(node, line, snooped), Supply::LocalMemory)
                }
            }
        } else {
            let had = self.use_far(node, line, place);
            if !has {
                self.count_far_miss(processor, place, had);
                self.count_fetch(node, place);
            }
            let answer = self.request(node, line, place, Request::Own, snooped);
            // Its owner gets no contents, only the answers of those that shared it.
            if entry.owner != node {
                self.fill_far(processor, line, place, answer.0);
            }
            answer
        };
        let others = self.members[usize::from(node)] & !(1 << processor);
        self.invalidate(others, line, place);
        result
    }

    /// An owner lets others read: it stays the owner.
    pub(crate) fn demote(&mut self, owner: usize, line: u64, place: Place) {
        self.l2[owner].change(line, self.lines.colour(place), State::Owned);
        let words = self.lose_l1(owner, line, true);
        self.sharing.write(self.lines.get(place).losses, words);
    }

    /// Takes a line from those of these processors that have it.
    pub(crate) fn invalidate(&mut self, processors: u128, line: u64, place: Place) {
        let losers = self.discard(processors, line, place);
        for loser in bits(losers).map(usize::from) {
            self.counters[loser].invalidated += 1;
        }
        self.sharing.take(&mut self.lines.get(place).losses, losers);
    }

    /// The same without a write as the reason. Returns those that had the line.
    pub(crate) fn discard(&mut self, processors: u128, line: u64, place: Place) -> u128 {
        let losers = self.lines.get(place).holders & processors;
        if losers == 0 {
            return 0;
        }
        let mut words = 0;
        for loser in bits(losers).map(usize::from) {
            self.l2[loser].change(line, self.lines.colour(place), State::Invalid);
            words |= self.lose_l1(loser, line, false);
        }
        let entry = self.lines.get(place);
        entry.holders &= !losers;
        if entry.owner != NOBODY && losers >> entry.owner & 1 == 1 {
            entry.owner = NOBODY;
        }
        self.sharing.write(entry.losses, words);
        losers
    }

    /// The first cache loses what it has of a line; returns the words that were written in it.
    fn lose_l1(&mut self, processor: usize, line: u64, only_writing: bool) -> u64 {
        let parts = self.line_shift - self.l1_shift;
        let l1 = &mut self.ports[processor].l1;
        let lines = line << parts..(line + 1) << parts;
        let words = lines.fold(0, |words, part| words | l1.lose(part, only_writing));
        self.watch_words(processor, line, words);
        words
    }

    /// A processor wrote words of a line in the present period of its history.
    fn note_words(&mut self, processor: usize, line: u64, words: u64) {
        self.watch_words(processor, line, words);
        // The page has been touched, so nobody asks where it is to be.
        let place = self.lines.find(line, |_| 0);
        self.sharing.write(self.lines.get(place).losses, words);
    }

    /// A line has to make room in the second cache.
    fn evict(&mut self, processor: usize, line: u64, state: State, at: Time) {
        let place = self.lines.find(line, |_| 0);
        let words = self.lose_l1(processor, line, false);
        let node = self.node_of[processor];
        let home = self.lines.home(place);
        let members = self.members[usize::from(node)];
        let entry = self.lines.get(place);
        self.sharing.write(entry.losses, words);
        entry.holders &= !(1 << processor);
        if state == State::Shared {
            return;
        }
        entry.owner = NOBODY;
        let keeps = entry.holders & members != 0;
        let snooped = self.snoop(node, at);
        let to = if home == node {
            self.memory(node, line, snooped);
            self.watch_home(node, line, |used| &mut used.written_back);
            0
        } else if self.has_replica(node, place) {
            self.memory(node, line, snooped);
            0
        } else if self.use_far(node, line, place) {
            self.far_memory(node, snooped);
            2
        } else {
            self.write_back(node, line, place, keeps, snooped);
            1
        };
        self.counters[processor].written_back[to] += 1;
    }
}
