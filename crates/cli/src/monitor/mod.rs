//! `gondwana monitor`: starts or ends the recording of a running run, or prints the counters of its filters.

mod counters;

use gondwana_console::columns::amount;
use gondwana_console::failure::{Failure, USAGE};
use gondwana_launcher::process::signals::Signals;
use gondwana_launcher::run::options::parse_filters;
use gondwana_launcher::run_registry::ask;
use gondwana_launcher::run_registry::requests::Request;
use std::ffi::OsStr;
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Longest time of a recording that ends by itself, in seconds: a year.
const LONGEST: f64 = 366.0 * 24.0 * 3600.0;

/// Options of `gondwana monitor`.
#[derive(Debug, clap::Args)]
pub(crate) struct MonitorOptions {
    /// The process of the gondwana run (gondwana topo --run lists yours)
    #[arg(value_name = "RUN", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    run: u32,
    /// Record in this file instead of PROGRAM.gwr
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Record for this many seconds, or until you interrupt this; without it, until --stop or the end of the run
    #[arg(long = "for", value_name = "SECONDS")]
    time: Option<f64>,
    /// End the recording
    #[arg(long, conflicts_with_all = ["record", "time", "filter"])]
    stop: bool,
    /// Count transactions as well until the recording ends, as gondwana run --monitor-filter does
    #[arg(long, value_name = "FILTER")]
    filter: Vec<String>,
    /// Show the counters of filters
    #[arg(long, conflicts_with_all = ["record", "time", "filter", "stop"])]
    counters: bool,
    /// Print the counters as JSON
    #[arg(long, requires = "counters")]
    json: bool,
}

/// Records a run.
pub(crate) fn monitor(options: &MonitorOptions) -> Result<ExitCode, Failure> {
    let time = options.time.map(duration).transpose()?;
    let filters = parse_filters("--filter", &options.filter)?;
    if options.stop {
        return stop(options.run);
    }
    if options.counters {
        return counters::show(options.run, options.json);
    }
    // Blocked before the start: an interrupt then must not leave the run recorded.
    let signals = Signals::new(true)?;
    let running = ask::ask(options.run)?;
    let file = options.record.clone().unwrap_or_else(|| default_file(&running.program));
    let file =
        std::path::absolute(&file).map_err(|error| Failure::system(&file.display().to_string(), &error))?;
    let (_, recorded) = ask::request(options.run, &Request::Record { file: file.clone(), filters })?;
    if running.common {
        println!(
            "what its nodes have in common by now crosses no more: to see that, too, start the run with --monitor or \
             --common-after 0"
        );
    }
    let Some(time) = time else {
        println!("recording in {}: gondwana monitor {} --stop ends it", file.display(), options.run);
        return Ok(ExitCode::SUCCESS);
    };
    if wait(recorded, &signals, time)? {
        return stop(options.run);
    }
    println!("the run has ended, or its recording: {}", described(&file));
    Ok(ExitCode::SUCCESS)
}

fn duration(seconds: f64) -> Result<Duration, Failure> {
    if !(seconds > 0.0 && seconds <= LONGEST) {
        return Err(Failure {
            status: USAGE,
            message: format!("--for {seconds}: give a number of seconds above 0"),
        });
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// The file for a program, in the working directory.
fn default_file(program: &str) -> PathBuf {
    let mut name = Path::new(program).file_name().unwrap_or(OsStr::new("program")).to_owned();
    name.push(".gwr");
    name.into()
}

fn stop(run: u32) -> Result<ExitCode, Failure> {
    let (file, _) = ask::request(run, &Request::Stop)?;
    if let Some(file) = file {
        println!("recorded: {}", described(&file));
    }
    Ok(ExitCode::SUCCESS)
}

/// A file, and its size.
fn described(file: &Path) -> String {
    match std::fs::metadata(file) {
        Ok(metadata) => format!("{} ({})", file.display(), amount(metadata.len())),
        Err(_) => file.display().to_string(),
    }
}

/// Waits until the time is over or the user interrupts; false if the recording has ended before.
fn wait(recorded: BufReader<UnixStream>, signals: &Signals, time: Duration) -> Result<bool, Failure> {
    let failed = |error: io::Error| Failure::system("waiting for the recording", &error);
    let mut stream = recorded.into_inner();
    stream.set_nonblocking(true).map_err(failed)?;
    let deadline = Instant::now() + time;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(true);
        }
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds = [poll(stream.as_raw_fd()), poll(signals.as_raw_fd())];
        let millis = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        // SAFETY: the kernel reads and writes the array given.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, millis) };
        let ends = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
        while let Some(arrived) = signals.read() {
            if ends.contains(&arrived.signal) {
                return Ok(true);
            }
        }
        match stream.read(&mut [0]) {
            // The launcher closes the connection with the recording.
            Ok(0) => return Ok(false),
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(false);
            }
            _ => {}
        }
    }
}
