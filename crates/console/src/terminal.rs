//! Reserves the last row of the terminal.
//!
//! Programs write to the terminal themselves, at any time. To separate their output from ours, the scroll region
//! excludes the last row while a line is shown. Programs are not affected: the cursor returns to its position, and
//! every change is a single write.

use std::io::{IsTerminal, Write};
use std::os::fd::{AsRawFd, RawFd};

/// Standard error, if it is a terminal on which a row can be reserved.
#[derive(Debug)]
pub struct LastRow {
    fd: RawFd,
    /// The reserved row, counted from 1; 0 while there is none.
    kept: u16,
}

impl LastRow {
    /// Writes nothing until a line is shown.
    pub fn of_standard_error() -> Option<Self> {
        let stream = std::io::stderr();
        let capable = std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
        (capable && stream.is_terminal()).then(|| Self { fd: stream.as_raw_fd(), kept: 0 })
    }

    /// Replaces the line, cut off at the terminal's width. Does nothing while the terminal belongs to another job or
    /// is stopped.
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

    /// Clears and releases the row, if there is one.
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

/// Sets the scroll region to the other rows. If the cursor is in the last row, the screen scrolls by one first.
fn keep(rows: u16) -> String {
    format!("\x1bD\x1b[A\x1b7\x1b[1;{}r\x1b8", rows - 1)
}

/// A terminal that is gone is no reason to stop.
fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Rows and columns of terminals that do not report them.
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

/// Rows and columns of the terminal on standard output, or the default.
pub fn size_of_standard_output() -> (usize, usize) {
    let (rows, columns) = size(std::io::stdout().as_raw_fd()).unwrap_or(USUAL);
    (usize::from(rows), usize::from(columns))
}

/// Columns of the terminal on standard output, or the default.
pub fn columns_of_standard_output() -> usize {
    let (_, columns) = size(std::io::stdout().as_raw_fd()).unwrap_or(USUAL);
    usize::from(columns)
}

/// False while the terminal is stopped or its buffer is full: writing would block.
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
