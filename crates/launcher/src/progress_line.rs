//! One line on the terminal that shows the progress of a long run, and is erased at its end.

use gondwana_console::terminal::LastRow;
use std::time::{Duration, Instant};

/// Runs shorter than this show nothing.
const QUIET: Duration = Duration::from_secs(1);

/// The shortest time between two drawings.
const PERIOD: Duration = Duration::from_millis(200);

/// The live line.
#[derive(Debug)]
pub struct ProgressLine {
    row: Option<LastRow>,
    up: usize,
    /// Faults and bytes of each node since its start.
    totals: Vec<(u64, u64)>,
    started: Instant,
    last: Instant,
    last_totals: (u64, u64),
}

impl ProgressLine {
    /// A line for a run of `nodes` nodes; shown only if standard error is a suitable terminal.
    pub fn new(nodes: u16) -> Self {
        Self { row: LastRow::of_standard_error(), ..Self::with_nodes(nodes) }
    }

    /// A line that is never shown.
    pub fn hidden() -> Self {
        Self::with_nodes(0)
    }

    fn with_nodes(nodes: u16) -> Self {
        let now = Instant::now();
        Self {
            row: None,
            up: 0,
            totals: vec![(0, 0); usize::from(nodes)],
            started: now,
            last: now,
            last_totals: (0, 0),
        }
    }

    /// True if the line is drawn, so nodes should report their progress.
    pub fn is_shown(&self) -> bool {
        self.row.is_some()
    }

    /// One more node runs.
    pub fn up(&mut self) {
        self.up += 1;
    }

    /// A node's totals since its start.
    pub fn progress(&mut self, node: u16, faults: u64, bytes: u64) {
        if let Some(totals) = self.totals.get_mut(usize::from(node)) {
            *totals = (faults, bytes);
        }
    }

    /// Draws the line if it is time to.
    pub fn draw(&mut self) {
        let now = Instant::now();
        let Some(row) = &mut self.row else { return };
        if now - self.started < QUIET || now - self.last < PERIOD {
            return;
        }
        let (faults, bytes) =
            self.totals.iter().fold((0, 0), |(faults, bytes), (f, b)| (faults + f, bytes + b));
        let seconds = (now - self.last).as_secs_f64();
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let line = render(
            now - self.started,
            self.up,
            self.totals.len(),
            rate(faults, self.last_totals.0),
            rate(bytes, self.last_totals.1),
        );
        self.last = now;
        self.last_totals = (faults, bytes);
        row.show(&line);
    }

    /// Removes the line, if it is there.
    pub fn erase(&mut self) {
        if let Some(row) = &mut self.row {
            row.clear();
        }
    }
}

fn render(elapsed: Duration, up: usize, nodes: usize, faults: f64, bytes: f64) -> String {
    format!(
        "[{} s] {up} of {nodes} nodes up, {faults:.0} faults/s, {:.1} MB/s",
        elapsed.as_secs(),
        bytes / 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_nodes_and_rates() {
        let line = render(Duration::from_millis(2900), 3, 4, 1234.4, 5.26e6);
        assert_eq!(line, "[2 s] 3 of 4 nodes up, 1234 faults/s, 5.3 MB/s");
    }
}
