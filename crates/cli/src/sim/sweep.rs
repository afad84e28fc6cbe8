//! `gondwana sim` with several machines or `--sweep`: each machine with each combination of settings is a run of its own, as
//! many at a time as the host has processors.

use super::options::Setting;
use super::plan::Placed;
use super::program::{self, Ended, Simulated, Streams};
use super::{SimOptions, plan, table};
use gondwana_console::failure::Failure;
use gondwana_console::output::{self, Output, tell};
use gondwana_locks::lock;
use gondwana_sim::Description;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// One run.
struct Case {
    /// The machine's name and the settings.
    name: String,
    /// The machine's file.
    text: String,
    /// What a plan says.
    placed: Placed,
}

/// Simulates all cases and prints one table. The output is that of the first case.
pub(super) fn sweep(options: &SimOptions, file: Option<Output>) -> Result<ExitCode, Failure> {
    let path = program::find(options)?;
    let cases = cases(options, &path)?;
    let ended = run_all(options, &path, &cases)?;
    let first = &ended[0];
    pass_on(io::stdout(), &first.output)?;
    pass_on(io::stderr(), &first.errors)?;
    for (case, end) in cases.iter().zip(&ended).skip(1) {
        if end.output != first.output {
            tell(&format!("{}: the program's output is not that on {}", case.name, cases[0].name));
        }
    }
    let names = cases.iter().map(|case| case.name.as_str());
    let rows: Vec<_> = names.zip(ended.iter().map(|end| end.statistics.as_ref())).collect();
    match file {
        Some(file) => {
            let runs: Vec<_> = rows
                .iter()
                .map(|(name, statistics)| serde_json::json!({"machine": name, "statistics": statistics}))
                .collect();
            file.write(&output::json(&runs))?;
        }
        None => eprint!("{}", table::comparison(&rows)),
    }
    let failed = ended.iter().find(|end| !end.succeeded());
    Ok(failed.unwrap_or(first).status())
}

/// Writes what the program has written.
fn pass_on(mut to: impl Write, bytes: &[u8]) -> Result<(), Failure> {
    match to.write_all(bytes) {
        // The reader has closed the pipe.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::system("the program's output", &error))
        }
        _ => Ok(()),
    }
}

/// All machines with all combinations of settings. All of them are checked before the first one runs.
fn cases(options: &SimOptions, path: &Path) -> Result<Vec<Case>, Failure> {
    let mut cases = vec![];
    for machine in &options.machine {
        let text = options.machine_text(machine)?;
        Description::parse(&text).map_err(|error| options.wrong_machine(machine, &error))?;
        let mut of_machine = vec![(machine.clone(), text)];
        for setting in &options.sweep {
            let mut longer = vec![];
            for (name, text) in &of_machine {
                for value in &setting.values {
                    longer.push((format!("{name} {}={value}", setting.field), with(text, setting, value)?));
                }
            }
            of_machine = longer;
        }
        for (name, text) in of_machine {
            let description = Description::parse(&text).map_err(|error| {
                let field = error.field.as_deref().unwrap_or("its file");
                Failure::usage(format!("{name}: {field}: {}", error.message))
            })?;
            options.check_threads(&description.topology())?;
            let placed = plan::resolve(options, &description, path)?;
            cases.push(Case { name, text, placed });
        }
    }
    Ok(cases)
}

/// The machine's file with a field changed.
fn with(text: &str, setting: &Setting, value: &str) -> Result<String, Failure> {
    let mut machine: toml::Table = toml::from_str(text).expect("the file has been read before");
    let mut parts = setting.field.split('.').peekable();
    let mut at = &mut machine;
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            // What is no number or the like is a text, without quotation marks that a shell would take.
            let parsed = toml::from_str::<toml::Table>(&format!("value = {value}"));
            let parsed = parsed.ok().and_then(|mut table| table.remove("value"));
            at.insert(part.to_owned(), parsed.unwrap_or_else(|| value.into()));
            break;
        }
        let inner = at.entry(part).or_insert_with(|| toml::Table::new().into());
        at = inner.as_table_mut().ok_or_else(|| {
            Failure::usage(format!("--sweep {}: {part} is a field without parts", setting.field))
        })?;
    }
    Ok(toml::to_string(&machine).expect("a table has a text"))
}

/// Runs the cases side by side, and says of each when it is over.
fn run_all(options: &SimOptions, path: &Path, cases: &[Case]) -> Result<Vec<Ended>, Failure> {
    let (next, over) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<Result<Ended, Failure>>>> =
        cases.iter().map(|_| Mutex::default()).collect();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(at) else { break };
            let end = {
                let simulated = Simulated { machine: &case.text, placed: &case.placed, recording: None };
                program::run(options, path, &simulated, Streams::Kept)
            };
            let over = over.fetch_add(1, Ordering::Relaxed) + 1;
            if end.is_ok() {
                tell(&format!("{over} of {} simulated: {}", cases.len(), case.name));
            }
            *lock(&results[at]) = Some(end);
        }
    };
    // A child ends with the thread that started it, which therefore waits for it.
    thread::scope(|scope| {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..processors.min(cases.len()) {
            scope.spawn(work);
        }
    });
    results.iter().filter_map(|result| lock(result).take()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_changed_or_added() {
        let setting = |field: &str| Setting { field: field.to_owned(), values: vec![] };
        let text = "nodes = 2\n[l2]\nsize = \"1MiB\"\n";
        let changed =
            |field: &str, value: &str| with(text, &setting(field), value).map(|text| text.parse().unwrap());
        let expected = |text: &str| Ok(text.parse::<toml::Table>().unwrap());
        assert_eq!(changed("nodes", "4"), expected("nodes = 4\n[l2]\nsize = \"1MiB\"\n"));
        assert_eq!(changed("l2.size", "2MiB"), expected("nodes = 2\n[l2]\nsize = \"2MiB\"\n"));
        assert_eq!(changed("tlb.miss", "7"), expected("nodes = 2\n[l2]\nsize = \"1MiB\"\n[tlb]\nmiss = 7\n"));
        assert!(changed("nodes.all", "1").unwrap_err().message.contains("nodes is a field without parts"));
    }
}
