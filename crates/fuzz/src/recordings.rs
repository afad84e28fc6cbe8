//! Recordings, and everything that is made of them.

use crc::{CRC_32_ISO_HDLC, Crc};
use gondwana_analysis::{Code, Names, Variable, analyse};
use gondwana_console::{clean, output};
use gondwana_plan::{CodeLocation, Plan};
use gondwana_recording::{FILE_HEADER, Recording, chunks, read};
use gondwana_report::recorded::Recorded;
use gondwana_report::{csv, page, plan_document, table};
use gondwana_rset::Registry;

/// Bytes before the contents of a chunk: their length, the sum of what follows, kind, and node.
const CHUNK_HEADER: usize = 12;

/// A recording. Hardly any change of one would have the right sums: so they are made right, unless the first byte is odd.
pub(crate) fn recording(bytes: &[u8]) {
    let Some((&first, file)) = bytes.split_first() else { return };
    let recording = if first & 1 == 0 { read(&*with_sums(file)) } else { read(file) };
    let Ok(recording) = recording else { return };
    shown(&recording, &Everything(&recording));
}

/// What is shown and advised of a recording.
fn shown(recording: &Recording, names: &dyn Names) {
    let analysis = analyse(recording, names);
    let advice = gondwana_analysis::advise(&analysis);
    let plan = gondwana_analysis::plan(&analysis, &advice);
    let document = plan_document::document(&analysis, &advice, &plan);
    let nodes = recording.run.nodes;
    if !plan.is_empty() {
        let machine = gondwana_control::machine(nodes, 1, 1 << 40);
        let read = Plan::parse(&document, &machine, &Registry::default());
        assert!(read.is_ok(), "{}\n{document}", read.unwrap_err());
    }
    let texts = [
        table::text(&analysis, &advice, usize::MAX, true),
        clean::text(&csv::lines(&analysis)),
        output::json(&Recorded::new(&analysis, &advice)),
        page::render(&analysis, &advice, &Plan::default()),
    ];
    for text in texts.iter().chain([&document]) {
        assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
    }
}

/// The file with the sums that its chunks must have.
fn with_sums(file: &[u8]) -> Vec<u8> {
    const SUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
    let Some((header, rest)) = file.split_at_checked(FILE_HEADER.len()) else { return file.to_vec() };
    let mut right = header.to_vec();
    for chunk in chunks(rest) {
        let at = right.len();
        right.extend_from_slice(chunk);
        if chunk.len() >= CHUNK_HEADER {
            let sum = SUM.checksum(&chunk[8..]);
            right[at + 4..at + 8].copy_from_slice(&sum.to_le_bytes());
        }
    }
    right
}

/// A program that has a name for every address, and what anybody asks for: names that the recording has, which can be
/// anything, and some of its own.
struct Everything<'a>(&'a Recording);

impl Everything<'_> {
    fn name(&self, address: u64) -> String {
        let names = &self.0.names;
        let chosen = (address >> 3) as usize % (names.len() + 1);
        names.get(chosen).map_or_else(
            || format!("name{}", address >> gondwana_page::PAGE_BITS),
            |(_, name)| name.name.clone(),
        )
    }
}

impl Names for Everything<'_> {
    fn code(&self, address: u64) -> Vec<Code> {
        let function = self.name(address);
        vec![Code {
            function,
            offset: address & 0xff,
            file: "a.c".to_owned(),
            line: 1,
            library: String::new(),
        }]
    }

    fn is_atomic(&self, address: u64) -> bool {
        address & 2 != 0
    }

    fn variable(&self, address: u64) -> Option<Variable> {
        let start = address & !0xffff;
        (address & 1 << 20 != 0).then(|| Variable {
            name: self.name(start),
            library: String::new(),
            start,
            bytes: 0x1_0000,
        })
    }

    fn has_variable(&self, _name: &str, _library: &str) -> bool {
        true
    }

    fn has_site(&self, _site: &CodeLocation, _library: &str) -> bool {
        true
    }
}
