//! Whether a coherence miss is true or false sharing: has another processor written the word that is accessed since this
//! one lost the line? (M. Dubois and others, ISCA 1993, without its look ahead at later accesses.)

/// A processor that has lost a line to another's write and not got it back.
#[derive(Clone, Copy, Debug)]
struct Loss {
    processor: u8,
    /// The next loss of the same line, or the next free one.
    next: Losses,
    /// The words that have been written since.
    words: u64,
}

/// The first loss of a line: an index, one too high; 0 if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses(u32);

impl Losses {
    fn index(self) -> Option<usize> {
        self.0.checked_sub(1).map(|index| usize::try_from(index).expect("an index"))
    }
}

/// The losses of all lines in one piece of memory: most lines have none, the others a few, and they come and go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sharing {
    losses: Vec<Loss>,
    free: Losses,
}

impl Sharing {
    /// These processors lose a line, none of which has lost it already.
    pub(crate) fn take(&mut self, line: &mut Losses, losers: u128) {
        for processor in bits(losers) {
            let loss = Loss { processor, next: *line, words: 0 };
            if let Some(at) = self.free.index() {
                *line = std::mem::replace(&mut self.free, self.losses[at].next);
                self.losses[at] = loss;
            } else {
                self.losses.push(loss);
                *line = Losses(u32::try_from(self.losses.len()).expect("no program has so many lines"));
            }
        }
    }

    /// These words of a line were written.
    pub(crate) fn write(&mut self, line: Losses, words: u64) {
        let mut next = line;
        while let Some(at) = next.index() {
            self.losses[at].words |= words;
            next = self.losses[at].next;
        }
    }

    /// A processor gets a line back to access these words: true if others wrote some of them meanwhile; none if it has
    /// not lost the line to a write.
    pub(crate) fn give_back(&mut self, line: &mut Losses, processor: u8, words: u64) -> Option<bool> {
        let mut before: Option<usize> = None;
        let mut this = *line;
        while let Some(at) = this.index() {
            let loss = self.losses[at];
            if loss.processor == processor {
                match before {
                    None => *line = loss.next,
                    Some(before) => self.losses[before].next = loss.next,
                }
                self.losses[at].next = std::mem::replace(&mut self.free, this);
                return Some(loss.words & words != 0);
            }
            (before, this) = (Some(at), loss.next);
        }
        None
    }
}

/// The numbers of the bits that are set, ascending.
pub(crate) fn bits(mut mask: u128) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let bit = u8::try_from(mask.trailing_zeros()).expect("a mask has 128 bits");
            mask &= mask - 1;
            bit
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharing_is_true_if_the_word_was_written_meanwhile() {
        let (mut sharing, mut line) = (Sharing::default(), Losses::default());
        sharing.write(line, 0b1000);
        sharing.take(&mut line, 0b01);
        sharing.write(line, 0b0010);
        assert_eq!(sharing.give_back(&mut line, 0, 0b0010), Some(true));
        assert_eq!(sharing.give_back(&mut line, 0, 0b0010), None, "it has the line");
        sharing.take(&mut line, 0b01);
        assert_eq!(sharing.give_back(&mut line, 0, 0b1010), Some(false), "both were written before");
        sharing.take(&mut line, 0b10);
        sharing.write(line, 0b0100);
        sharing.take(&mut line, 0b01);
        assert_eq!(sharing.give_back(&mut line, 1, 0b0100), Some(true), "before the other one lost it");
        assert_eq!(sharing.give_back(&mut line, 0, 0b0100), Some(false));
        assert_eq!(line, Losses::default());
    }

    #[test]
    fn lines_do_not_mix_and_places_are_used_again() {
        let mut sharing = Sharing::default();
        let mut lines = [Losses::default(); 2];
        sharing.take(&mut lines[0], 0b111);
        sharing.take(&mut lines[1], 0b010);
        sharing.write(lines[0], 1);
        assert_eq!(sharing.give_back(&mut lines[0], 1, 1), Some(true), "in the middle");
        assert_eq!(sharing.give_back(&mut lines[1], 1, 1), Some(false));
        assert_eq!(sharing.give_back(&mut lines[0], 1, 1), None);
        sharing.take(&mut lines[1], 0b11);
        assert_eq!(sharing.losses.len(), 4);
        let back = [0, 2].map(|processor| sharing.give_back(&mut lines[0], processor, 1));
        assert_eq!(back, [Some(true), Some(true)]);
        assert_eq!(sharing.give_back(&mut lines[1], 0, 1), Some(false));
    }
}
