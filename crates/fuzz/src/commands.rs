//! What reaches the command from other processes: agents, launchers, and those who ask about a run.

use gondwana_launcher::hosts::protocol::{
    AgentAnswer, AgentCommand, Frame, VersionOnly, parse, skip_to_greeting,
};
use gondwana_launcher::run_registry::Running;
use gondwana_launcher::run_registry::requests::{self, Request};

/// What comes from an agent, or from the launcher: a greeting perhaps, then frames.
pub(crate) fn agent(bytes: &[u8]) {
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
            let _ = (
                parse::<AgentAnswer>(&contents),
                parse::<AgentCommand>(&contents),
                parse::<VersionOnly>(&contents),
            );
        }
    }
}

/// What others ask of a run, and what a run answers.
pub(crate) fn asking(bytes: &[u8]) {
    if let Ok(request) = serde_json::from_slice::<Request>(bytes) {
        let sent = serde_json::to_vec(&request).expect("requests are JSON");
        assert_eq!(serde_json::from_slice::<Request>(&sent).ok(), Some(request));
    }
    let _ =
        (serde_json::from_slice::<Running>(bytes), serde_json::from_slice::<requests::RequestAnswer>(bytes));
}
