//! The analysis of a recording as JSON.

use gondwana_analysis::{Advice, Analysis};
use serde::Serialize;

/// The version of the JSON: one more whenever a name or a meaning changes.
const VERSION: u32 = 1;

/// The analysis and its advice, to be serialised.
#[derive(Debug, Serialize)]
pub struct Recorded<'a> {
    version: u32,
    #[serde(flatten)]
    analysis: &'a Analysis,
    advice: &'a [Advice],
}

impl<'a> Recorded<'a> {
    /// The analysis with its advice.
    pub fn new(analysis: &'a Analysis, advice: &'a [Advice]) -> Self {
        Self { version: VERSION, analysis, advice }
    }
}
