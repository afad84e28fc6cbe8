//! The last row of the terminal, kept free of what programs print.
//!
//! Programs write to the terminal themselves, at any time. So that their output and ours do not run into each other,
//! the terminal scrolls only the rows above the last one while there is a line of ours. Programs that print notice
//! nothing: the cursor returns to where it was, and every change is a single write.

use std::io::{IsTerminal, Write};
use std::os::fd::{AsRawFd, RawFd};

/// Standard error, if it is a terminal on which a row can be kept.
#[derive(Debug)]
pub struct LastRow {
    fd: RawFd,
    /// The row that is kept, counted from 1; 0 while there is none.
    kept: u16,
}

impl LastRow {
    /// Nothing is written until there is a line to show.
    pub fn of_standard_error() -> Option<Self> {
        let stream = std::io::stderr();
        let capable = std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
        (capable && stream.is_terminal()).then(|| Self { fd: stream.as_raw_fd(), kept: 0 })
    }

    /// Shows a line instead of the one before, cut off where the terminal ends. Does nothing while the terminal belongs
    /// to another job or takes no output.
    pub fn show(&mut self, line: &str) {
        if !in_foreground(self.fd) || !takes_output(self.fd) {
            return;
        }
        let Some((rows, columns)) = size(self.fd) else { return };
        // A terminal of another size has forgotten which rows scroll.
        let keep = if self.kept == rows { String::new() } else { keep(rows) };
        self.kept = rows;
        let shown: String = line.chars().take(usize::from(columns) - 1).collect();
        write(&format!("{keep}\x1b7\x1b[{rows};1H\x1b[K{shown}\x1b8"));
    }

    /// Gives the row back, empty, if there is one.
    pub fn clear(&mut self) {
        let row = std::mem::take(&mut self.kept);
        if row > 0 {
            write(&format!("\x1b7\x1b[r\x1b[{row};1H\x1b[K\x1b8"));
        }
    }
}

impl Drop for LastRow {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Makes only the other rows scroll. If the cursor is in the last row, everything moves up by one before.
fn keep(rows: u16) -> String {
    format!("\x1bD\x1b[A\x1b7\x1b[1;{}r\x1b8", rows - 1)
}

/// A terminal that is gone is no reason to stop.
fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Rows and columns that terminals have that do not say.
const USUAL: (u16, u16) = (24, 80);

/// Rows and columns, if there are enough for two kinds of output.
fn size(fd: RawFd) -> Option<(u16, u16)> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the kernel writes one winsize.
    let result = unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size) };
    let (rows, columns) = match (size.ws_row, size.ws_col) {
        (0, _) | (_, 0) => USUAL,
        given => given,
    };
    (result == 0 && rows >= 2 && columns >= 2).then_some((rows, columns))
}

/// Rows and columns of the terminal that standard output is, or as many as are usual.
pub fn size_of_standard_output() -> (usize, usize) {
    let (rows, columns) = size(std::io::stdout().as_raw_fd()).unwrap_or(USUAL);
    (usize::from(rows), usize::from(columns))
}

/// Columns of the terminal that standard output is, or as many as are usual.
pub fn columns_of_standard_output() -> usize {
    let (_, columns) = size(std::io::stdout().as_raw_fd()).unwrap_or(USUAL);
    usize::from(columns)
}

/// False while the user has stopped the terminal, or nobody reads what it is sent: writing would wait.
fn takes_output(fd: RawFd) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: the kernel reads and writes one pollfd.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
}

/// True unless the terminal belongs to another job at the moment.
pub fn in_foreground(fd: RawFd) -> bool {
    // SAFETY: neither call touches memory.
    unsafe {
        let foreground = libc::tcgetpgrp(fd);
        foreground < 0 || foreground == libc::getpgrp()
    }
}
