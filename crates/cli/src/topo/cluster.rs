//! The machine of a running cluster: its nodes are processes.

use gondwana_console::clean::line;
use gondwana_console::columns::{Side, amount, columns, counted, to_whole};
use gondwana_console::failure::Failure;
use gondwana_console::output;
use gondwana_control::machine;
use gondwana_launcher::run_registry::memory::{Used, used};
use gondwana_launcher::run_registry::{Launcher, Running, RunningNode, ask};
use gondwana_report::machine::picture;
use gondwana_topology::{Machine, NodeId};
use serde_json::{Value, json};
use std::thread;

/// A run that was found.
struct Found {
    launcher: u32,
    run: Running,
    machine: Machine,
    /// Memory of each node, if it is visible from here.
    used: Vec<Option<Used>>,
    /// The name of this computer.
    here: String,
}

/// The run of one process.
pub(super) fn one(launcher: u32, json: bool, columns: usize) -> Result<String, Failure> {
    let run = ask::ask(launcher)?;
    let used = |node: &RunningNode| node.process.filter(|_| node.host.is_none()).and_then(used);
    let nodes = u16::try_from(run.nodes.len()).map_err(|error| Failure::cannot(error.to_string()))?;
    let mut machine = machine(nodes, run.processors_each, run.span);
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    for (node, running) in machine.nodes.iter_mut().zip(&run.nodes) {
        node.label = running.host.clone().unwrap_or_else(|| here.clone());
    }
    machine.name.clone_from(&run.program);
    let used = run.nodes.iter().map(used).collect();
    let found = Found { launcher, run, machine, used, here };
    Ok(if json { output::json(&found.to_json()) } else { found.text(columns) })
}

/// The user's runs: the only one, or a list of all.
pub(super) fn all(json: bool, columns: usize) -> Result<String, Failure> {
    let own = ask::own();
    match (own.first(), own.len()) {
        (None, _) => {
            return Err(Failure::cannot(
                "no program of yours runs on several nodes, started on this computer",
            ));
        }
        (Some(only), 1) => return one(only.process, json, columns),
        _ => {}
    }
    // Runs that have ended since or cannot answer are left out. Root queries other users' processes too, so all are
    // queried in parallel.
    let runs: Vec<(Launcher, Option<Running>)> = thread::scope(|scope| {
        let asked = own.into_iter().map(|run| (run, scope.spawn(move || ask::ask(run.process).ok())));
        let asked: Vec<_> = asked.collect();
        asked.into_iter().map(|(run, answer)| (run, answer.join().ok().flatten())).collect()
    });
    Ok(if json {
        output::json(&json!({ "runs": runs.iter().map(summary).collect::<Vec<_>>() }))
    } else {
        list(&runs)
    })
}

fn summary((launcher, run): &(Launcher, Option<Running>)) -> Value {
    json!({
        "process": launcher.process,
        "user": launcher.user,
        "program": run.as_ref().map(|run| &run.program),
        "nodes": run.as_ref().map(|run| run.nodes.len()),
        "seconds": run.as_ref().map(|run| run.seconds),
    })
}

fn list(runs: &[(Launcher, Option<Running>)]) -> String {
    let heading = ["process", "user", "nodes", "time", "program"].map(str::to_owned).to_vec();
    let line = |(launcher, run): &(Launcher, Option<Running>)| {
        let of_run = |text: fn(&Running) -> String| run.as_ref().map_or_else(unknown, text);
        vec![
            launcher.process.to_string(),
            launcher.user.to_string(),
            of_run(|run| run.nodes.len().to_string()),
            of_run(|run| time(run.seconds)),
            of_run(|run| line(&run.program)),
        ]
    };
    let sides = [Side::Right, Side::Right, Side::Right, Side::Right, Side::Left];
    let table = columns(&sides, &[heading].into_iter().chain(runs.iter().map(line)).collect::<Vec<_>>());
    format!("{table}\ngondwana topo --run PROCESS shows one of them\n")
}

impl Found {
    fn text(&self, columns: usize) -> String {
        [self.title(), self.picture(columns), self.table()].join("\n")
    }

    fn title(&self) -> String {
        let Running { program, seconds, fabric, consistency, nodes, span, .. } = &self.run;
        format!(
            "{} (process {}) for {}: {}, {consistency} over {fabric}, {} of shared addresses\n",
            line(program),
            self.launcher,
            time(*seconds),
            counted(nodes.len(), "node"),
            amount(*span)
        )
    }

    fn picture(&self, columns: usize) -> String {
        let contents = self.nodes().map(|(id, running, used)| {
            let node = self.machine.node(id).expect("the machine has been made of these nodes");
            let mut lines = picture::processors(&self.machine, node);
            lines.push(line(self.host(running)));
            lines.push(format!("process {}, {}", process(running), running.state.name()));
            lines.extend(used.map(|used| format!("{} shared", amount(used.shared))));
            lines.extend(used.map(|used| format!("{} resident", amount(used.resident))));
            (id, lines)
        });
        picture::boxes(contents.collect(), columns)
    }

    fn table(&self) -> String {
        let heading = ["node", "host", "process", "state", "processors", "shared", "resident"];
        let line = |(id, running, used): (NodeId, &RunningNode, Option<Used>)| {
            let processors = self.machine.node(id).map(|node| node.processors.to_string());
            vec![
                id.to_string(),
                line(self.host(running)),
                process(running),
                running.state.name().to_owned(),
                processors.unwrap_or_default(),
                used.map_or_else(unknown, |used| amount(used.shared)),
                used.map_or_else(unknown, |used| amount(used.resident)),
            ]
        };
        let sides = [Side::Right, Side::Left, Side::Right, Side::Left, Side::Left, Side::Right, Side::Right];
        let heading = heading.map(str::to_owned).to_vec();
        columns(&sides, &[heading].into_iter().chain(self.nodes().map(line)).collect::<Vec<_>>())
    }

    fn to_json(&self) -> Value {
        let node = |(id, running, used): (NodeId, &RunningNode, Option<Used>)| {
            json!({
                "node": id,
                "host": self.host(running),
                "process": running.process,
                "state": running.state,
                "memory": used,
            })
        };
        json!({
            "process": self.launcher,
            "program": self.run.program,
            "seconds": self.run.seconds,
            "fabric": self.run.fabric,
            "consistency": self.run.consistency,
            "monitored": self.run.monitored,
            "nodes": self.nodes().map(node).collect::<Vec<_>>(),
            "machine": self.machine,
        })
    }

    fn nodes(&self) -> impl Iterator<Item = (NodeId, &RunningNode, Option<Used>)> {
        let numbers = (0..).map(NodeId);
        numbers.zip(&self.run.nodes).zip(&self.used).map(|((id, running), used)| (id, running, *used))
    }

    fn host<'a>(&'a self, node: &'a RunningNode) -> &'a str {
        node.host.as_deref().unwrap_or(&self.here)
    }
}

/// A value that is unknown here.
fn unknown() -> String {
    "-".to_owned()
}

fn process(node: &RunningNode) -> String {
    node.process.map_or_else(unknown, |process| process.to_string())
}

/// A time for people.
pub(crate) fn time(seconds: f64) -> String {
    let seconds = to_whole(seconds);
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_launcher::run_registry::State;

    fn found() -> Found {
        let node = |process, state| RunningNode { host: None, process, state };
        let mut nodes = vec![node(Some(78), State::Up), node(Some(79), State::Starting)];
        nodes.push(RunningNode::starting(Some("beta".to_owned())));
        let run = Running {
            program: "./a\x1b[2J".to_owned(),
            seconds: 75.5,
            fabric: "shm".to_owned(),
            consistency: "rc".to_owned(),
            processors_each: 2,
            span: 3 << 40,
            monitored: false,
            common: false,
            nodes,
        };
        let used = Used { shared: 3 << 20, resident: 5 << 20 };
        let machine = machine(3, 2, run.span);
        Found { launcher: 77, run, machine, used: vec![Some(used), None, None], here: "alpha".to_owned() }
    }

    #[test]
    fn a_run_is_a_title_a_picture_and_a_table() {
        let expected = "\
./a\u{fffd}[2J (process 77) for 1 min 15 s: 3 nodes, rc over shm, 3 TiB of shared addresses

+- node 0 ---------------+ +- node 1 ---------------+ +- node 2 ---------------+
| [0] [1]                | | [2] [3]                | | [4] [5]                |
| alpha                  | | alpha                  | | beta                   |
| process 78, up         | | process 79, starting   | | process -, starting    |
| 3 MiB shared           | |                        | |                        |
| 5 MiB resident         | |                        | |                        |
+------------------------+ +------------------------+ +------------------------+

node  host   process  state     processors  shared  resident
   0  alpha       78  up        0-1          3 MiB     5 MiB
   1  alpha       79  starting  2-3              -         -
   2  beta         -  starting  4-5              -         -
";
        assert_eq!(found().text(81), expected);
    }

    #[test]
    fn json_has_the_same_in_exact_numbers() {
        let json = found().to_json();
        assert_eq!(json["seconds"], 75.5);
        assert_eq!(json["nodes"][0]["memory"], json!({ "shared": 3 << 20, "resident": 5 << 20 }));
        assert_eq!(json["nodes"][2]["host"], "beta");
        assert_eq!(json["nodes"][2]["memory"], Value::Null);
        let machine: Machine = serde_json::from_value(json["machine"].clone()).unwrap();
        assert_eq!(machine, found().machine);
    }

    #[test]
    fn runs_that_do_not_answer_are_listed() {
        let launchers = [77, 90].map(|process| Launcher { process, user: 1000 });
        let text = list(&[(launchers[0], Some(found().run)), (launchers[1], None)]);
        let expected = "\
process  user  nodes        time  program
     77  1000      3  1 min 15 s  ./a\u{fffd}[2J
     90  1000      -           -  -

gondwana topo --run PROCESS shows one of them
";
        assert_eq!(text, expected);
    }

    #[test]
    fn times_have_two_units_at_most() {
        assert_eq!([0.9, 59.9, 60.0, 7384.0].map(time), ["0 s", "59 s", "1 min 0 s", "2 h 3 min"]);
    }
}
