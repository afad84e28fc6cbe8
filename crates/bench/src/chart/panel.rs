//! What one chart shows.

use super::spread::Spread;
use serde::Serialize;

/// One chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Panel {
    /// What it shows.
    pub title: String,
    /// What its values are: ratios, where 1 is what they are compared with.
    pub axis: String,
    /// What is along the horizontal axis.
    pub groups: Vec<String>,
    /// The bars of each group.
    pub series: Vec<Series>,
}

/// Bars of one colour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Series {
    /// Their name.
    pub name: String,
    /// One value for each group that has one.
    pub values: Vec<Option<Spread>>,
}

/// A text as XML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
