//! Threads that are to be woken when a lock is given back which they will take.

use super::WaitSlot;

/// One event seldom ends the waits of more threads.
const MOST: usize = 8;

/// A few threads to be woken.
#[derive(Clone, Copy)]
pub(crate) struct Sleepers {
    slots: [WaitSlot; MOST],
    count: usize,
}

impl Sleepers {
    /// No thread.
    pub(crate) const NONE: Self = Self { slots: [WaitSlot(0); MOST], count: 0 };

    /// Adds a thread.
    ///
    /// # Errors
    /// With its place if there is no room.
    pub(super) fn add(&mut self, slot: WaitSlot) -> Result<(), WaitSlot> {
        let free = self.slots.get_mut(self.count).ok_or(slot)?;
        *free = slot;
        self.count += 1;
        Ok(())
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = WaitSlot> {
        self.slots.into_iter().take(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_finds_no_room_is_told() {
        let mut sleepers = Sleepers::NONE;
        for slot in (0..8).map(WaitSlot) {
            assert_eq!(sleepers.add(slot), Ok(()));
        }
        assert_eq!(sleepers.add(WaitSlot(8)), Err(WaitSlot(8)));
        assert_eq!(sleepers.iter().map(|slot| slot.0).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    }
}
