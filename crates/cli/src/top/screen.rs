//! A full-screen display; restores the terminal at its end.

use gondwana_console::terminal;
use gondwana_launcher::process::signals::Signals;
use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Instant;

/// The alternate screen, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The terminal, taken over until this value goes.
pub(super) struct FullScreen {
    /// The previous terminal settings: input is unbuffered and not echoed now.
    keyboard: Option<libc::termios>,
}

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// The time is over.
    Time,
    /// The terminal has another size.
    Resized,
    /// The user has pressed the key for that.
    Quit,
    /// This process was sent a signal that ends or stops it.
    Signal(i32),
    /// Nothing more comes.
    Ended,
}

impl FullScreen {
    /// Takes the terminal over.
    pub(super) fn enter() -> Self {
        let mut screen = Self { keyboard: None };
        screen.take();
        screen
    }

    fn take(&mut self) {
        self.keyboard = attributes();
        if let Some(mut attributes) = self.keyboard {
            attributes.c_lflag &= !(libc::ICANON | libc::ECHO);
            attributes.c_cc[libc::VMIN] = 1;
            attributes.c_cc[libc::VTIME] = 0;
            set_attributes(&attributes);
        }
        write(ENTER);
    }

    fn give_back(&mut self) {
        write(LEAVE);
        if let Some(attributes) = self.keyboard.take() {
            set_attributes(&attributes);
        }
    }

    /// Draws the lines for the size of the terminal.
    pub(super) fn draw(&self, lines: impl FnOnce(usize, usize) -> Vec<String>) {
        let (rows, columns) = terminal::size_of_standard_output();
        let lines = lines(rows, columns).join("\x1b[K\r\n");
        write(&format!("\x1b[1;1H{lines}\x1b[K\x1b[J"));
    }

    /// Waits for a key, a signal, the end of the run (a descriptor that can be read then), or a time.
    pub(super) fn wait(&self, signals: &Signals, end: RawFd, until: Instant) -> Woken {
        loop {
            let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // The kernel skips negative numbers.
            let keyboard = if self.keyboard.is_some() { 0 } else { -1 };
            let mut fds = [poll(signals.as_raw_fd()), poll(end), poll(keyboard)];
            let left = until.saturating_duration_since(Instant::now()).as_micros().div_ceil(1000);
            let millis = i32::try_from(left).unwrap_or(i32::MAX);
            // SAFETY: the kernel reads and writes the array given.
            let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, millis) };
            if let Some(woken) = signals.read().and_then(|arrived| meaning(arrived.signal)) {
                return woken;
            }
            if ready > 0 && fds[2].revents != 0 && quits() {
                return Woken::Quit;
            }
            if ready > 0 && fds[1].revents != 0 {
                return Woken::Ended;
            }
            if Instant::now() >= until {
                return Woken::Time;
            }
        }
    }

    /// Stops this process with the terminal restored; continues when the process does.
    pub(super) fn stop(&mut self) {
        self.give_back();
        // SAFETY: stops this process until the shell continues it.
        unsafe { libc::raise(libc::SIGSTOP) };
        self.take();
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// The event of a signal.
fn meaning(signal: i32) -> Option<Woken> {
    match signal {
        libc::SIGWINCH => Some(Woken::Resized),
        libc::SIGHUP | libc::SIGINT | libc::SIGQUIT | libc::SIGTERM | libc::SIGTSTP => {
            Some(Woken::Signal(signal))
        }
        libc::SIGUSR1 | libc::SIGUSR2 => Some(Woken::Signal(signal)),
        _ => None,
    }
}

/// True if a quit key was pressed, or the input is at its end.
fn quits() -> bool {
    let mut keys = [0_u8; 64];
    // SAFETY: the kernel writes at most as many bytes as are given.
    let count = unsafe { libc::read(0, keys.as_mut_ptr().cast(), keys.len()) };
    match usize::try_from(count) {
        Ok(count @ 1..) => keys[..count].iter().any(|key| matches!(key, b'q' | b'Q')),
        _ => true,
    }
}

fn attributes() -> Option<libc::termios> {
    // SAFETY: zeros are a valid value; the C library writes one termios.
    unsafe {
        let mut attributes: libc::termios = std::mem::zeroed();
        (libc::tcgetattr(0, &raw mut attributes) == 0).then_some(attributes)
    }
}

fn set_attributes(attributes: &libc::termios) {
    // A terminal that is gone needs none.
    // SAFETY: the C library reads one termios.
    unsafe { libc::tcsetattr(0, libc::TCSADRAIN, attributes) };
}

/// A terminal that is gone is no reason to stop.
fn write(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}
