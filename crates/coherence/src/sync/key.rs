use super::SyncError;

/// How many keys can exist at once: `PTHREAD_KEYS_MAX`.
pub const KEYS_MAX: u32 = 1024;

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u32,
    destructor: Option<u64>,
}

/// The keys of thread-specific data of the whole run.
///
/// A key is `slot + KEYS_MAX * n` where it is the `n`-th in its slot. Slots are used in turn, so a number comes
/// back only after all 2³² were given out.
#[derive(Debug)]
pub(super) struct Keys {
    slots: Vec<Slot>,
    /// Where to look first for a free slot.
    turn: u32,
}

impl Default for Keys {
    fn default() -> Self {
        let slots = (0..KEYS_MAX).map(|slot| Slot { key: slot, destructor: None }).collect();
        Self { slots, turn: 0 }
    }
}

impl Keys {
    pub(super) fn create(&mut self, destructor: u64) -> Result<i64, SyncError> {
        let free = (self.turn..self.turn + KEYS_MAX)
            .map(|slot| slot % KEYS_MAX)
            .find(|slot| self.slots[*slot as usize].destructor.is_none())
            .ok_or(SyncError::Exhausted)?;
        self.turn = (free + 1) % KEYS_MAX;
        let slot = &mut self.slots[free as usize];
        slot.destructor = Some(destructor);
        Ok(i64::from(slot.key))
    }

    pub(super) fn delete(&mut self, key: u32) -> Result<i64, SyncError> {
        let slot = self.live(key)?;
        slot.destructor = None;
        slot.key = slot.key.wrapping_add(KEYS_MAX);
        Ok(0)
    }

    pub(super) fn destructor(&mut self, key: u32) -> Result<i64, SyncError> {
        Ok(self.live(key)?.destructor.unwrap_or_default().cast_signed())
    }

    fn live(&mut self, key: u32) -> Result<&mut Slot, SyncError> {
        let slot = &mut self.slots[(key % KEYS_MAX) as usize];
        if slot.key == key && slot.destructor.is_some() { Ok(slot) } else { Err(SyncError::Invalid) }
    }
}
