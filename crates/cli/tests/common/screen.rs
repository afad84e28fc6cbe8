//! A terminal: a pair of pseudo-terminals, and the screen that a user would see.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROWS: u16 = 8;
const COLUMNS: u16 = 80;

/// A terminal with its screen.
pub(crate) struct Terminal {
    keyboard: File,
    /// All that was written to it.
    pub written: String,
    screen: Screen,
}

impl Terminal {
    /// Starts a command whose standard streams and controlling terminal are a new terminal.
    pub(crate) fn start(command: &mut Command) -> (Self, Child) {
        let (mut ours, mut theirs) = (0, 0);
        let size = libc::winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the C library writes two descriptors, and reads the size.
        let made = unsafe {
            libc::openpty(
                &raw mut ours,
                &raw mut theirs,
                std::ptr::null_mut(),
                std::ptr::null(),
                &raw const size,
            )
        };
        assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: both descriptors are new and nobody else's.
        let (ours, theirs) = unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
        // A child that inherited our end would keep its terminal from hanging up. SAFETY: sets a flag of our
        // descriptors.
        let set = |end: &OwnedFd| unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        assert_eq!((set(&ours), set(&theirs)), (0, 0));
        let stream = || Stdio::from(theirs.try_clone().unwrap());
        command.stdin(stream()).stdout(stream()).stderr(stream()).env("TERM", "xterm");
        // SAFETY: all calls are async-signal-safe and touch no memory.
        unsafe {
            command.pre_exec(|| {
                // Background processes may ignore these; login shells do not.
                for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                let failed = libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0;
                if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
            });
        }
        let child = command.spawn().unwrap();
        // The streams in `command` would keep the terminal open.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let this = Self { keyboard: File::from(ours), written: String::new(), screen: Screen::default() };
        (this, child)
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).unwrap();
    }

    /// Reads until the screen shows a text; panics if that takes too long.
    pub(crate) fn shows(&mut self, text: &str, limit: Duration) {
        let deadline = Instant::now() + limit;
        while !self.screen.text().contains(text) {
            assert!(Instant::now() < deadline, "{text:?} expected on {:?}", self.screen.text());
            assert!(self.read(deadline), "{text:?} expected before the end of {:?}", self.screen.text());
        }
    }

    /// Reads until the screen satisfies `is`; panics after a timeout.
    pub(crate) fn until(&mut self, what: &str, limit: Duration, is: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + limit;
        while !is(&self.screen.text()) {
            assert!(Instant::now() < deadline, "{what} expected on {:?}", self.screen.text());
            assert!(self.read(deadline), "{what} expected before the end of {:?}", self.screen.text());
        }
    }

    /// Gives the terminal another size, as when its window is changed.
    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the kernel reads one winsize.
        let result = unsafe { libc::ioctl(self.keyboard.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    }

    /// True if the terminal shows what is typed, and gives programs whole lines, as shells expect it.
    pub(crate) fn is_as_usual(&self) -> bool {
        // SAFETY: zeros are a valid value; the C library writes one termios.
        let attributes = unsafe {
            let mut attributes: libc::termios = std::mem::zeroed();
            assert_eq!(libc::tcgetattr(self.keyboard.as_raw_fd(), &raw mut attributes), 0);
            attributes
        };
        let usual = libc::ECHO | libc::ICANON;
        attributes.c_lflag & usual == usual && !self.screen.is_other && !self.screen.is_without_cursor
    }

    /// Reads until no process has the terminal open any more; returns the final screen.
    pub(crate) fn end(&mut self, limit: Duration) -> String {
        let deadline = Instant::now() + limit;
        while self.read(deadline) {
            assert!(Instant::now() < deadline, "somebody still has the terminal: {:?}", self.screen.text());
        }
        self.screen.text()
    }

    /// Reads what there is; false at the end.
    fn read(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now()).as_millis().try_into().unwrap();
        let mut fd = libc::pollfd { fd: self.keyboard.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes one pollfd.
        if unsafe { libc::poll(&raw mut fd, 1, left) } == 0 {
            return true;
        }
        let mut buffer = [0; 4096];
        // Without anybody at the other end reading fails.
        let length = self.keyboard.read(&mut buffer).unwrap_or(0);
        let text = String::from_utf8_lossy(&buffer[..length]);
        self.written.push_str(&text);
        text.chars().for_each(|c| self.screen.put(c));
        length > 0
    }
}

/// The part of a VT100 that the command needs.
struct Screen {
    rows: Vec<String>,
    cursor: (usize, usize),
    saved: (usize, usize),
    /// The last row that scrolls, counted from 0.
    bottom: usize,
    /// An escape sequence that is not complete.
    sequence: String,
    /// The alternate screen is shown; the main screen is restored later.
    is_other: bool,
    behind: Vec<String>,
    is_without_cursor: bool,
}

impl Default for Screen {
    fn default() -> Self {
        let rows = vec![String::new(); usize::from(ROWS)];
        let bottom = rows.len() - 1;
        Self {
            rows,
            cursor: (0, 0),
            saved: (0, 0),
            bottom,
            sequence: String::new(),
            is_other: false,
            behind: vec![],
            is_without_cursor: false,
        }
    }
}

impl Screen {
    fn text(&self) -> String {
        self.rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    fn put(&mut self, c: char) {
        if !self.sequence.is_empty() || c == '\x1b' {
            self.sequence.push(c);
            let complete = match self.sequence.chars().nth(1) {
                None => false,
                Some('[') => self.sequence.len() > 2 && c.is_ascii_alphabetic(),
                Some(_) => true,
            };
            if complete {
                let sequence = std::mem::take(&mut self.sequence);
                self.obey(&sequence[1..]);
            }
            return;
        }
        match c {
            '\n' => self.down(),
            '\r' => self.cursor.1 = 0,
            _ => {
                let (row, column) = self.cursor;
                let mut line: Vec<char> = self.rows[row].chars().collect();
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                self.rows[row] = line.into_iter().collect();
                self.cursor.1 += 1;
            }
        }
    }

    fn down(&mut self) {
        if self.cursor.0 == self.bottom {
            self.rows.remove(0);
            self.rows.insert(self.bottom, String::new());
        } else {
            self.cursor.0 = (self.cursor.0 + 1).min(self.rows.len() - 1);
        }
    }

    fn set_mode(&mut self, mode: &str, on: bool) {
        match mode {
            "[?25" => self.is_without_cursor = !on,
            "[?1049" if on && !self.is_other => {
                let blank = vec![String::new(); self.rows.len()];
                self.behind = std::mem::replace(&mut self.rows, blank);
                (self.is_other, self.saved) = (true, self.cursor);
            }
            "[?1049" if !on && self.is_other => {
                self.rows = std::mem::take(&mut self.behind);
                (self.is_other, self.cursor) = (false, self.saved);
            }
            _ => panic!("the screen does not know the mode {mode:?}"),
        }
    }

    fn obey(&mut self, sequence: &str) {
        let (body, last) = sequence.split_at(sequence.len() - 1);
        let numbers: Vec<usize> =
            body.trim_start_matches('[').split(';').filter_map(|number| number.parse().ok()).collect();
        match (body.starts_with('['), last) {
            (false, "7") => self.saved = self.cursor,
            (false, "8") => self.cursor = self.saved,
            (false, "D") => self.down(),
            (true, "A") => self.cursor.0 = self.cursor.0.saturating_sub(1),
            (true, "H") => self.cursor = (numbers[0] - 1, numbers[1] - 1),
            (true, "K") => {
                let kept = self.rows[self.cursor.0].chars().take(self.cursor.1).collect();
                self.rows[self.cursor.0] = kept;
            }
            (true, "J") => {
                let (row, column) = self.cursor;
                self.rows[row] = self.rows[row].chars().take(column).collect();
                self.rows[row + 1..].iter_mut().for_each(String::clear);
            }
            (true, "h" | "l") => self.set_mode(body, last == "h"),
            (true, "r") => {
                self.bottom = numbers.get(1).copied().unwrap_or(self.rows.len()) - 1;
                self.cursor = (0, 0);
            }
            _ => panic!("the screen does not know {sequence:?}"),
        }
    }
}
