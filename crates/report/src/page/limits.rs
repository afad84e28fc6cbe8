//! How much a page shows at most.

/// The page shows this many data areas, hottest first.
pub(super) const MOST_AREAS: usize = 1000;
/// The page shows this many locks, hottest first.
pub(super) const MOST_LOCKS: usize = 200;
/// The page shows this many atomic variables, hottest first.
pub(super) const MOST_ATOMICS: usize = 200;
/// The page shows this many source lines of an atomic variable, hottest first.
pub(super) const MOST_PLACES: usize = 8;
/// The page shows this many constructs of OpenMP, those with the longest waits.
pub(super) const MOST_CONSTRUCTS: usize = 200;
/// The page shows this many nodes.
pub(super) const MOST_NODES: usize = 64;
/// The most threads with a start routine on the page.
pub(super) const MOST_THREADS: usize = 4096;
/// The number of colours for nodes or threads; further ones repeat them in another shade.
pub(super) const COLOURS: usize = 8;
