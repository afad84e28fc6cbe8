//! Registries as text, for whoever keeps them in a file.

use crate::{Entry, RSet, Registry};
use gondwana_topology::{DescriptionError, NodeSet, ProcessorSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a registry is in a text.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default, rename = "rset")]
    sets: BTreeMap<String, TextEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TextEntry {
    #[serde(default, skip_serializing_if = "ProcessorSet::is_empty")]
    processors: ProcessorSet,
    #[serde(default, skip_serializing_if = "NodeSet::is_empty")]
    memory: NodeSet,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    exclusive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    written: Option<String>,
}

impl From<&Entry> for TextEntry {
    fn from(entry: &Entry) -> Self {
        Self {
            processors: *entry.rset.processors(),
            memory: *entry.rset.memory(),
            parent: entry.parent.clone(),
            exclusive: entry.exclusive,
            written: entry.written.clone(),
        }
    }
}

impl From<TextEntry> for Entry {
    fn from(text: TextEntry) -> Self {
        let TextEntry { processors, memory, parent, exclusive, written } = text;
        Self { rset: RSet::new(processors, memory), parent, exclusive, written }
    }
}

impl Registry {
    /// The registry as a text that people can read and change.
    ///
    /// # Panics
    ///
    /// Never: all that a registry holds has a text.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let sets = self.iter().map(|(name, entry)| (name.to_owned(), entry.into())).collect();
        toml::to_string(&Text { sets }).expect("a registry has a text")
    }

    /// Reads the text, which somebody may have changed.
    pub fn from_toml(text: &str) -> Result<Self, DescriptionError> {
        let read: Text = toml::from_str(text)
            .map_err(|error| DescriptionError::of(text, error.span(), error.message()))?;
        let entries = read.sets.into_iter().map(|(name, entry)| (name, entry.into())).collect();
        Self::from_entries(entries)
            .map_err(|(name, error)| DescriptionError::at_path(text, &["rset", &name], &error.to_string()))
    }
}
