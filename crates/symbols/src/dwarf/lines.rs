//! Where the code of a line is.

use super::Debug;
use gimli::{EndianSlice, LineProgramHeader, LineRow, LittleEndian, Section, Unit};
use std::ops::Range;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

impl Debug {
    /// True if there is a line table.
    pub(crate) fn has_lines(&self) -> bool {
        !self.dwarf.debug_line.reader().is_empty()
    }

    /// Where the code of a line is. The file may be named without its folders.
    pub(crate) fn code_of_line(&self, file: &str, line: u32) -> Vec<Range<u64>> {
        let dwarf = self.borrowed();
        let mut found = vec![];
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            if let Ok(unit) = dwarf.unit(header) {
                // Data before a damaged place is used.
                let _ = lines_of_unit(&dwarf, &unit, file, line, &mut found);
            }
        }
        found
    }
}

fn lines_of_unit(
    dwarf: &gimli::Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    file: &str,
    line: u32,
    found: &mut Vec<Range<u64>>,
) -> gimli::Result<()> {
    let Some(program) = unit.line_program.clone() else { return Ok(()) };
    let is_meant = |header: &LineProgramHeader<Slice<'_>>, row: &LineRow| {
        let path = row.file(header).and_then(|entry| {
            let name = dwarf.attr_string(unit, entry.path_name()).ok()?;
            let folder = entry.directory(header).and_then(|folder| dwarf.attr_string(unit, folder).ok());
            let folder = folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
            Some(format!("{folder}/{}", name.to_string_lossy()))
        });
        path.is_some_and(|path| is_file(&path, file))
    };
    let mut rows = program.rows();
    let mut begun: Option<u64> = None;
    while let Some((header, row)) = rows.next_row()? {
        if let Some(start) = begun.take()
            && start < row.address()
        {
            found.push(start..row.address());
        }
        if !row.end_sequence()
            && row.line().is_some_and(|number| number.get() == u64::from(line))
            && is_meant(header, row)
        {
            begun = Some(row.address());
        }
    }
    Ok(())
}

/// True if a path ends with the named file.
fn is_file(path: &str, named: &str) -> bool {
    let mut path = path.rsplit('/');
    let mut named = named.rsplit('/');
    path.next() == named.next() && path.zip(named).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_may_be_named_without_folders() {
        assert!(is_file("src/grid.c", "grid.c") && is_file("grid.c", "src/grid.c"));
        assert!(!is_file("src/grid.c", "rid.c") && !is_file("a/grid.c", "b/grid.c"));
    }
}
