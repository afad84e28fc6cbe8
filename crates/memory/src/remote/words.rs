//! Words that several nodes update atomically.

/// 64-bit words in the memory of a node, all zero at first. Each operation is atomic; reads acquire, writes release.
pub trait SharedWords {
    /// Reads a word.
    fn load(&self, word: usize) -> u64;

    /// Writes a word.
    fn store(&self, word: usize, value: u64);

    /// Writes a word if it is `current`, or returns its value. May fail spuriously.
    ///
    /// # Errors
    /// With the present value if nothing was written.
    fn compare_exchange(&self, word: usize, current: u64, new: u64) -> Result<u64, u64>;

    /// Orders all writes before it, to words and to frames, before all reads behind it (sequentially consistent).
    fn fence(&self);
}
