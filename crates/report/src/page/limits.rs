//! How much a page shows at most.

/// The page shows this many data areas, hottest first.
pub const MOST_AREAS: usize = 1000;
/// The page shows this many locks, hottest first.
pub const MOST_LOCKS: usize = 200;
/// The page shows this many nodes.
pub const MOST_NODES: usize = 64;
/// The page knows where this many threads began.
pub const MOST_THREADS: usize = 4096;
/// The page has colours for this many nodes or threads; then they begin again, in another shade.
pub const COLOURS: usize = 8;
