//! A line of text that needs no allocation.

use std::fmt;

/// Room for one line; what does not fit is cut off.
pub(crate) struct FixedLine {
    bytes: [u8; 512],
    length: usize,
}

impl Default for FixedLine {
    fn default() -> Self {
        Self { bytes: [0; 512], length: 0 }
    }
}

impl FixedLine {
    /// What was written so far.
    pub(crate) fn text(&self) -> &str {
        let written = &self.bytes[..self.length];
        std::str::from_utf8(written)
            .unwrap_or_else(|error| std::str::from_utf8(&written[..error.valid_up_to()]).unwrap_or(""))
    }
}

impl fmt::Write for FixedLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let count = text.len().min(self.bytes.len() - self.length);
        self.bytes[self.length..self.length + count].copy_from_slice(&text.as_bytes()[..count]);
        self.length += count;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[test]
    fn what_does_not_fit_is_cut_off_between_characters() {
        let mut line = FixedLine::default();
        write!(line, "{}\u{e9}", "x".repeat(511)).unwrap();
        assert_eq!(line.text(), "x".repeat(511));
    }
}
