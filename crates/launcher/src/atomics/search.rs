//! The search of single files, and of several at a time.

use super::cache::{Kept, SearchCache};
use gondwana_atomics::{Analysis, Finding, Plain, scan};
use gondwana_elf::FileVersion;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// What is found sooner is not worth to be kept.
const WORTH_KEEPING: Duration = Duration::from_millis(10);

/// What was found in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Searched {
    /// How many atomic instructions it has.
    pub count: usize,
    /// The first of them.
    pub first: Option<Finding>,
    /// Those that can be executed under a lock, if it is an OpenMP program.
    pub lockable: Vec<u64>,
    /// It opens libraries.
    pub opens_libraries: bool,
    /// The first place where threads synchronise by plain loads and stores, unless something else decides.
    pub plain: Option<Plain>,
    /// All atomic instructions, if they are reductions of OpenMP.
    pub reductions: Option<Vec<u64>>,
}

impl Kept for Searched {
    const NAME: &'static str = "";
}

/// Searches a file, unless what was found in it is known.
///
/// # Errors
/// If it cannot be read, or is damaged.
pub(super) fn file<'a, T: Kept>(
    path: &Path,
    read: impl FnOnce() -> io::Result<Cow<'a, [u8]>>,
    cache: &SearchCache,
    search: impl FnOnce(&[u8]) -> Result<T, gondwana_atomics::Error>,
) -> io::Result<T> {
    // Before it is read: what changes afterwards is another version.
    let version = FileVersion::of(&path.metadata()?);
    if let Some(known) = cache.get(version) {
        return Ok(known);
    }
    let image = read()?;
    let began = Instant::now();
    let found = search(&image).map_err(io::Error::other)?;
    if began.elapsed() >= WORTH_KEEPING {
        cache.put(version, &found);
    }
    Ok(found)
}

/// Searches the image of a file.
pub(super) fn of_image(image: &[u8]) -> Result<Searched, gondwana_atomics::Error> {
    let findings = scan(image)?;
    // Programs that open libraries need no closer look: that decides.
    let analysis = if findings.opens_libraries { Analysis::default() } else { findings.analyse(image)? };
    Ok(Searched {
        count: findings.atomics.len(),
        first: findings.first,
        lockable: findings.lockable,
        opens_libraries: findings.opens_libraries,
        plain: analysis.plain,
        reductions: analysis.reductions,
    })
}

/// Calls `search` for the numbers up to `count`, several at a time, and `take` with the results in their order, until that breaks off.
///
/// # Errors
/// Those of `take`, which also ends it.
pub(super) fn in_order<T: Send, E>(
    count: usize,
    search: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(usize, T) -> Result<ControlFlow<()>, E>,
) -> Result<(), E> {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    let worker = |sender: mpsc::Sender<(usize, T)>| {
        while !is_over.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= count || sender.send((place, search(place))).is_err() {
                break;
            }
        }
    };
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from).min(count);
        for sender in (0..workers).map(|_| sender.clone()) {
            scope.spawn(|| worker(sender));
        }
        drop(sender);
        let (mut early, mut awaited) = (BTreeMap::new(), 0);
        for (place, result) in results {
            early.insert(place, result);
            while let Some(result) = early.remove(&awaited) {
                let went_on = take(awaited, result);
                awaited += 1;
                if !matches!(went_on, Ok(ControlFlow::Continue(()))) {
                    is_over.store(true, Ordering::Relaxed);
                    return went_on.map(|_| ());
                }
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_taken_in_order_until_one_decides() {
        for last in [0, 1, 7, 99] {
            let mut taken = vec![];
            let ended = in_order(
                100,
                |place| place * 2,
                |place, result| {
                    assert_eq!(result, place * 2);
                    taken.push(place);
                    Ok::<_, ()>(if place == last {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    })
                },
            );
            assert_eq!(ended, Ok(()));
            assert_eq!(taken, (0..=last).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_the_search() {
        let ended = in_order(
            10,
            |place| place,
            |place, _| if place == 3 { Err(place) } else { Ok(ControlFlow::Continue(())) },
        );
        assert_eq!(ended, Err(3));
        assert_eq!(in_order(0, |place| place, |place, _| Err(place)), Ok(()), "there is nothing");
    }
}
