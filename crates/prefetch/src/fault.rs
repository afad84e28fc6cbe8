//! A fault, as the predictor sees it.

/// What a fault asks for. Patterns are of one kind each: the cost of a wrong prediction differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A page that no node has touched, so that more of them cost nothing.
    #[default]
    First,
    /// The page, to be read: a copy too many costs its home a fault when that writes.
    Read,
    /// The page, to be written: one too many may have to go back.
    Write,
    /// The right to write a page that is resident.
    Upgrade,
}

impl Kind {
    /// The kind of a fault by a write or a read, at a page that is resident or not, and that a node has touched or none.
    /// `None` if another thread has resolved the fault already.
    ///
    /// # Examples
    /// ```
    /// use gondwana_prefetch::Kind;
    /// assert_eq!(Kind::of(true, true, true), Some(Kind::Upgrade));
    /// assert_eq!(Kind::of(false, true, true), None);
    /// ```
    #[must_use]
    pub fn of(write: bool, resident: bool, touched: bool) -> Option<Self> {
        match (resident, touched, write) {
            (true, _, true) => Some(Self::Upgrade),
            (true, _, false) => None,
            (false, false, _) => Some(Self::First),
            (false, true, false) => Some(Self::Read),
            (false, true, true) => Some(Self::Write),
        }
    }
}

/// A fault of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The number of the page.
    pub page: u32,
    /// The address of the instruction.
    pub code: usize,
    /// What it asks for.
    pub kind: Kind,
    /// The page is neither resident nor in flight. If it was prefetched, it was evicted before use.
    pub absent: bool,
}
