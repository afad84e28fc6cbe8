//! `gondwana top`: the present rates of a run.

mod feed;
mod screen;
mod snapshot;
mod text;

use feed::Feed;
use gondwana_console::failure::{Failure, USAGE};
use gondwana_console::output::{json, print};
use gondwana_launcher::exit;
use gondwana_launcher::process::events::End;
use gondwana_launcher::process::signals::Signals;
use gondwana_launcher::run_registry::ask;
use gondwana_launcher::run_registry::requests::Request;
use screen::{FullScreen, Woken};
use snapshot::{Rates, Snapshot};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Shortest and longest interval, in seconds. Nodes send totals four times a second.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.5..=3600.0;

/// Lines of each list where nothing limits them.
const LISTED: usize = 20;

/// Options of `gondwana top`.
#[derive(Debug, clap::Args)]
pub(crate) struct TopOptions {
    /// The process of the gondwana run (gondwana topo --run lists yours)
    #[arg(value_name = "RUN", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    run: u32,
    /// Interval in seconds, over which rates are shown and after which they are renewed
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Print one interval and end, as if standard output is no terminal
    #[arg(long)]
    once: bool,
    /// Print one interval as JSON and end
    #[arg(long)]
    json: bool,
}

/// Shows a run until the user has seen enough.
pub(crate) fn top(options: &TopOptions) -> Result<ExitCode, Failure> {
    if !INTERVALS.contains(&options.interval) {
        let message = format!("--interval {}: give a number of seconds from 0.5 to 3600", options.interval);
        return Err(Failure { status: USAGE, message });
    }
    let interval = Duration::from_secs_f64(options.interval);
    let running = ask::ask(options.run)?;
    // Blocked before another thread starts, so that only this one gets them.
    let signals = Signals::new(true)?;
    let (recorded, stream) = ask::request(options.run, &Request::Follow)?;
    let mut feed = Feed::start(stream).map_err(|error| Failure::system("following the run", &error))?;
    let mut rates = Rates::new(options.run, running, recorded);
    if options.json || options.once || !std::io::stdout().is_terminal() {
        return once(options, &mut feed, &mut rates, interval);
    }
    let mut screen = FullScreen::enter();
    let mut shown = rates.snapshot(&mut feed);
    let mut renewed = Instant::now();
    loop {
        screen.draw(|rows, columns| text::fitting(&shown, rows, columns));
        match screen.wait(&signals, feed.end(), renewed + interval) {
            Woken::Time => {
                shown = rates.snapshot(&mut feed);
                renewed = Instant::now();
            }
            Woken::Resized => {}
            Woken::Quit => return Ok(ExitCode::SUCCESS),
            Woken::Signal(libc::SIGTSTP) => screen.stop(),
            Woken::Signal(signal) => {
                drop(screen);
                return Ok(exit::like(End::Signalled(signal)));
            }
            Woken::Ended => {
                drop(screen);
                println!("the run of process {} has ended", options.run);
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

/// Prints the rates of one interval.
fn once(
    options: &TopOptions,
    feed: &mut Feed,
    rates: &mut Rates,
    interval: Duration,
) -> Result<ExitCode, Failure> {
    // After the first totals of each node: rates need two.
    feed.wait_for_nodes(rates.nodes(), interval);
    drop(rates.snapshot(feed));
    feed.wait(interval);
    let shown: Snapshot = rates.snapshot(feed);
    if options.json {
        return print(&json(&shown));
    }
    print(&text::whole(&shown, LISTED))
}
