//! What reaches the command from outside, for the fuzz targets of `crates/fuzz`.

use crate::hosts::protocol::{Answer, Command, Frame, VersionOnly, parse, skip_to_greeting};
use crate::running::Running;
use crate::running::requests::{self, Request};
use crate::{advise, clean, report, topo};
use gondwana_analysis::{Names, analyse};
use gondwana_plan::Plan;
use gondwana_recording::Recording;
use gondwana_rset::Registry;
use gondwana_topology::Machine;

/// What comes from an agent, or from the launcher: a greeting perhaps, then frames.
///
/// # Panics
/// If a frame is not what would be sent.
pub fn agent(bytes: &[u8]) {
    let mut stream = bytes;
    if !matches!(skip_to_greeting(&mut stream), Ok(true)) {
        stream = bytes;
    }
    while let Ok(Some(frame)) = Frame::read(&mut stream) {
        let mut sent = vec![];
        frame.write(&mut sent).expect("what was read is short enough");
        assert_eq!(Frame::read(&mut &sent[..]).ok().flatten().as_ref(), Some(&frame));
        if let Frame::Message(contents) = frame {
            // Each side takes what it expects.
            let _ =
                (parse::<Answer>(&contents), parse::<Command>(&contents), parse::<VersionOnly>(&contents));
        }
    }
}

/// What others ask of a run, and what a run answers.
///
/// # Panics
/// If a request is not what would be sent.
pub fn asking(bytes: &[u8]) {
    if let Ok(request) = serde_json::from_slice::<Request>(bytes) {
        let sent = serde_json::to_vec(&request).expect("requests are JSON");
        assert_eq!(serde_json::from_slice::<Request>(&sent).ok(), Some(request));
    }
    let _ = (serde_json::from_slice::<Running>(bytes), serde_json::from_slice::<requests::Answer>(bytes));
}

/// What is shown of a machine.
///
/// # Panics
/// If it has control characters.
pub fn machine(machine: &Machine) {
    for columns in [40, 100] {
        let text = clean::text(&topo::text(machine, columns));
        assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
    }
}

/// What is shown and advised of a recording.
///
/// # Panics
/// If anything but text comes of it, or the plan is none that a run would take.
pub fn shown(recording: &Recording, names: &dyn Names) {
    let analysis = analyse(recording, names);
    let advice = gondwana_analysis::advise(&analysis);
    let plan = gondwana_analysis::plan(&analysis, &advice);
    let document = advise::document(&analysis, &advice, &plan);
    let nodes = recording.run.nodes;
    if !plan.is_empty() {
        let machine = gondwana_control::machine(nodes, 1, 1 << 40);
        let read = Plan::parse(&document, &machine, &Registry::default());
        assert!(read.is_ok(), "{}\n{document}", read.unwrap_err());
    }
    let texts = report::all(&analysis, &advice);
    for text in texts.iter().chain([&document]) {
        assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
    }
}
