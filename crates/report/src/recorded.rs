//! What a recording tells as JSON.

use gondwana_analysis::{Advice, Analysis};
use serde::Serialize;

/// The version of the JSON: one more whenever a name or a meaning changes.
const VERSION: u32 = 1;

/// The analysis and what follows from it, to be serialised.
#[derive(Debug, Serialize)]
pub struct Recorded<'a> {
    version: u32,
    #[serde(flatten)]
    analysis: &'a Analysis,
    advice: &'a [Advice],
}

impl<'a> Recorded<'a> {
    /// The analysis with the advice that follows from it.
    pub fn new(analysis: &'a Analysis, advice: &'a [Advice]) -> Self {
        Self { version: VERSION, analysis, advice }
    }
}
