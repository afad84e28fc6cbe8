//! Text in columns, and numbers as people read them.

/// On which side of its column a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Lines of cells, each column as wide as its widest cell. Nothing follows the last cell of a line.
pub fn columns(sides: &[Side], lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        lines.iter().filter_map(|line: &Vec<String>| line.get(column)).map(|c| c.chars().count()).max()
    };
    let widths: Vec<usize> = (0..sides.len()).map(|column| width(column).unwrap_or(0)).collect();
    let line = |cells: &Vec<String>| {
        let padded = cells.iter().zip(sides.iter().zip(&widths)).map(|(cell, (side, &width))| match side {
            Side::Left => format!("{cell:<width$}"),
            Side::Right => format!("{cell:>width$}"),
        });
        let text = padded.collect::<Vec<_>>().join("  ");
        format!("{}\n", text.trim_end())
    };
    lines.iter().map(line).collect()
}

/// A number without what is behind its point; where it has no such number, the nearest one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "floats have no other conversion, and this one stops at the least and the greatest number"
)]
pub fn to_whole(number: f64) -> u64 {
    number as u64
}

/// An amount of memory with three digits or so: for people, where `gondwana_topology::Bytes` is exact.
pub fn amount(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match UNITS.iter().find(|(_, shift)| bytes >> shift > 0) {
        None => format!("{bytes} B"),
        Some((unit, shift)) if bytes.is_multiple_of(1 << shift) => format!("{} {unit}", bytes >> shift),
        Some((unit, shift)) => format!("{:.1} {unit}", bytes as f64 / f64::from(1 << (shift - 10)) / 1024.0),
    }
}

/// The number with a comma between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Numbers of nodes or threads as a list with ranges: `0-3, 7`.
pub fn ranges(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let runs = sorted.chunk_by(|one, next| one + 1 == *next).map(|run| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// A number with a noun: `1 node`, `2 nodes`.
pub fn counted(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        more => format!("{more} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_ranges() {
        assert_eq!(ranges(&[7, 1, 0, 2, 2]), "0-2, 7");
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[u32::MAX - 1, u32::MAX]), "4294967294-4294967295");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let lines = [["node", "size", "name"], ["0", "64 GiB", ""], ["10", "1 GiB", "a"]];
        let lines = lines.map(|line| line.map(str::to_owned).to_vec());
        let text = columns(&[Side::Right, Side::Right, Side::Left], &lines);
        assert_eq!(text, "node    size  name\n   0  64 GiB\n  10   1 GiB  a\n");
    }

    #[test]
    fn amounts_are_short() {
        let amounts = [0, 1023, 1 << 10, 1536 << 10, 24_684_084 << 10, 5 << 40].map(amount);
        assert_eq!(amounts, ["0 B", "1023 B", "1 KiB", "1.5 MiB", "23.5 GiB", "5 TiB"]);
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
