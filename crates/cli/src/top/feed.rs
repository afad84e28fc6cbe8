//! The stream of the nodes' records.

use gondwana_locks::{lock, wait_timeout};
use gondwana_recording::{Reader, Recording};
use std::io::{self, BufReader};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// The nodes' records since the last look, and their lasting records.
pub(super) struct Feed {
    shared: Arc<Shared>,
    /// Readable once no more comes.
    end: UnixStream,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    recording: Recording,
    over: bool,
}

impl Feed {
    /// Reads records from a launcher from now on.
    pub(super) fn start(stream: BufReader<UnixStream>) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let (end, ending) = UnixStream::pair()?;
        // No timeout: the stream is silent as long as the nodes are.
        stream.get_ref().set_read_timeout(None)?;
        let reading = Arc::clone(&shared);
        thread::spawn(move || {
            read(stream, &reading);
            reading.lock().over = true;
            reading.changed.notify_all();
            drop(ending);
        });
        Ok(Self { shared, end })
    }

    /// A descriptor that is readable once the run has ended.
    pub(super) fn end(&self) -> RawFd {
        self.end.as_raw_fd()
    }

    /// Passes the records to `look`; then drops the records of events.
    pub(super) fn look<R>(&mut self, look: impl FnOnce(&mut Recording) -> R) -> R {
        let mut state = self.shared.lock();
        let result = look(&mut state.recording);
        let recording = &mut state.recording;
        recording.intervals.clear();
        recording.stretches.clear();
        recording.totals.clear();
        recording.written.clear();
        recording.banks.clear();
        recording.watched.clear();
        recording.ended.clear();
        result
    }

    /// Waits until so many nodes have sent totals, with a timeout.
    pub(super) fn wait_for_nodes(&self, nodes: usize, limit: Duration) {
        self.wait_until(limit, |state| {
            let mut seen: Vec<u16> = state.recording.totals.iter().map(|(node, _)| *node).collect();
            seen.sort_unstable();
            seen.dedup();
            seen.len() >= nodes
        });
    }

    /// Waits for this time, or until the run has ended.
    pub(super) fn wait(&self, time: Duration) {
        self.wait_until(time, |_| false);
    }

    fn wait_until(&self, limit: Duration, enough: impl Fn(&State) -> bool) {
        let deadline = Instant::now() + limit;
        let mut state = self.shared.lock();
        while !state.over && !enough(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = wait_timeout(&self.shared.changed, state, left);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Reads to the end. The stream always ends with a cut.
fn read(stream: BufReader<UnixStream>, shared: &Shared) {
    let Ok(mut reader) = Reader::new(stream) else { return };
    // A record is read outside the lock: its sender may take its time between two halves.
    let mut next = Recording::default();
    while let Ok(true) = reader.next(&mut next) {
        let mut state = shared.lock();
        move_into(&mut next, &mut state.recording);
        shared.changed.notify_all();
    }
}

/// Appends new records to the earlier ones.
fn move_into(next: &mut Recording, to: &mut Recording) {
    if to.run.nodes == 0 {
        to.run = next.run.clone();
    }
    // The last record of a node about itself counts.
    for (node, started) in next.started.drain(..) {
        to.started.retain(|(other, _)| *other != node);
        to.started.push((node, started));
    }
    to.threads.append(&mut next.threads);
    to.sites.append(&mut next.sites);
    to.objects.append(&mut next.objects);
    to.intervals.append(&mut next.intervals);
    to.stretches.append(&mut next.stretches);
    to.written.append(&mut next.written);
    to.references.append(&mut next.references);
    to.banks.append(&mut next.banks);
    to.watched.append(&mut next.watched);
    to.segments.append(&mut next.segments);
    to.images.append(&mut next.images);
    to.names.append(&mut next.names);
    to.omitted.append(&mut next.omitted);
    to.totals.append(&mut next.totals);
    to.ended.append(&mut next.ended);
}
