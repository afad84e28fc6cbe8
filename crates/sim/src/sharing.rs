//! Whether a coherence miss is true or false sharing: has another processor written the word that is accessed since this
//! one lost the line? (M. Dubois and others, ISCA 1993, without its look ahead at later accesses.)

/// What is known of a line that some processor has lost to another's write.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// How often a processor has taken the line from others.
    period: u32,
    /// For each word, the last period in which it was written.
    written: Vec<u32>,
    /// The processors that have lost the line, and in which period.
    lost: Vec<(u8, u32)>,
}

impl History {
    /// A processor takes the line from those with a bit in `losers`.
    pub(crate) fn take(&mut self, losers: u128) {
        self.period += 1;
        for loser in bits(losers) {
            self.lost.retain(|(processor, _)| *processor != loser);
            self.lost.push((loser, self.period));
        }
    }

    /// These words were written in the present period.
    pub(crate) fn write(&mut self, words: u64) {
        let needed = 64 - words.leading_zeros();
        let needed = usize::try_from(needed).expect("at most 64");
        if self.written.len() < needed {
            self.written.resize(needed, 0);
        }
        for word in bits(words.into()) {
            self.written[usize::from(word)] = self.period;
        }
    }

    /// A processor gets the line back to access these words: true if others wrote some of them meanwhile; none if it has
    /// not lost the line to a write.
    pub(crate) fn give_back(&mut self, processor: u8, words: u64) -> Option<bool> {
        let at = self.lost.iter().position(|(loser, _)| *loser == processor)?;
        let (_, since) = self.lost.swap_remove(at);
        let written = |word: usize| self.written.get(word).is_some_and(|period| *period >= since);
        Some(bits(words.into()).any(|word| written(usize::from(word))))
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
        let mut line = History::default();
        line.write(0b1000);
        line.take(0b01);
        line.write(0b0010);
        assert_eq!(line.give_back(0, 0b0010), Some(true));
        assert_eq!(line.give_back(0, 0b0010), None, "it has the line");
        line.take(0b01);
        assert_eq!(line.give_back(0, 0b1010), Some(false), "both were written before");
        line.take(0b10);
        line.write(0b0100);
        line.take(0b01);
        assert_eq!(line.give_back(1, 0b0100), Some(true), "in a period that is over");
        assert_eq!(line.give_back(0, 0b0100), Some(false));
    }
}
