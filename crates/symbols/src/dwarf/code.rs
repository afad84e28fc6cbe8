//! Functions, files and lines of instructions.

use super::{Debug, Reader};
use crate::demangle::readable;
use addr2line::Context;
use gimli::Reader as _;

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The function; empty if unknown.
    pub function: String,
    /// The file, as given to the compiler; empty if unknown.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: u32,
}

impl Debug {
    /// The places of an instruction, the innermost first: more than one where functions were inlined.
    pub(crate) fn frames(&self, address: u64) -> Vec<Frame> {
        let Some(context) = self.context() else { return vec![] };
        let Ok(mut frames) = context.find_frames(address).skip_all_loads() else { return vec![] };
        let mut found = vec![];
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.and_then(|function| Some(readable(&function.raw_name().ok()?)));
            let location = frame.location;
            let file = location.as_ref().and_then(|location| location.file).unwrap_or_default().to_owned();
            let line = location.and_then(|location| location.line).unwrap_or_default();
            found.push(Frame { function: function.unwrap_or_default(), file, line });
        }
        if let Some(folder) = self.folder(context, address) {
            for frame in &mut found {
                let told = frame.file.strip_prefix(&folder).and_then(|rest| rest.strip_prefix('/'));
                if let Some(told) = told.map(str::to_owned) {
                    frame.file = told;
                }
            }
        }
        found
    }

    fn context(&self) -> Option<&Context<Reader>> {
        let make = || {
            if self.survey().is_too_deep {
                return None;
            }
            Context::from_arc_dwarf(self.dwarf.clone()).ok()
        };
        self.context.get_or_init(make).as_ref()
    }

    /// The folder in which the compiler was called.
    fn folder(&self, context: &Context<Reader>, address: u64) -> Option<String> {
        let unit = context.find_dwarf_and_unit(address).skip_all_loads()?;
        let folder = unit.comp_dir.as_ref()?.to_string_lossy().ok()?;
        Some(folder.trim_end_matches('/').to_owned())
    }
}
