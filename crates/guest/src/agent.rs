//! What runs in the guest: the first process, which takes scripts from the second serial port and answers there.
//!
//! A script comes as its lines, ended by a line with nothing but a dot. The answer is a line `STATUS OUTPUT ERRORS`,
//! the exit status and two lengths, followed by as many bytes of standard output and of standard error. Lengths
//! instead of marks at the ends: programs may print what they like. The first serial port is the kernel's.

use std::io::{self, BufRead, Read};
use std::time::Duration;

/// The line that ends a script.
const END: &str = ".";

/// The line that says that the guest takes scripts. Before it the port may say what firmware says.
const READY: &str = "gondwana guest is ready";

/// What came of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub errors: String,
    /// The exit status, as a shell gives it: 128 and the number of the signal if one ended it.
    pub status: i32,
}

impl Ran {
    /// Standard output of a script that had to succeed.
    ///
    /// # Panics
    /// If it did not.
    #[track_caller]
    pub fn succeeded(self) -> String {
        assert!(self.status == 0, "{self}");
        self.output
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { output, errors, status } = self;
        write!(to, "exit status {status}\n--- output\n{output}--- errors\n{errors}---")
    }
}

/// The command of the shell that prints the lines from standard input up to [`END`].
///
/// The builtin `read` of busybox would not do: when a child of the shell ends meanwhile, it begins anew and forgets
/// what it has of the line. Orphans are children of the first process, and may end at any time.
fn take() -> String {
    format!("busybox awk '$0 == \"{END}\" {{ exit }} {{ print }}'")
}

/// The program with which the guest begins: it takes all files to memory of the node of processor 0, and goes on with the
/// agent, which is at [`AGENT`].
///
/// The kernel unpacks the image beside other work of its start, in memory of whatever node the processor belongs to that
/// has nothing else to do. Half of a small node may be gone then. The file system could be bound to a node, but so would
/// be what programs write to their mappings of it.
pub(crate) fn first_program() -> String {
    format!(
        "#!/bin/busybox sh
/bin/busybox mkdir /all
/bin/busybox mount -t tmpfs -o mode=755 all /all
for file in /*; do
    [ $file = /all ] || /bin/busybox taskset 1 /bin/busybox cp -a $file /all
done
exec /bin/busybox switch_root /all {AGENT}
"
    )
}

/// The path of the agent in the guest.
pub(crate) const AGENT: &str = "/agent";

/// The program of the first process. It gives each script `limit`; a script that takes longer is killed. Processes that
/// it has left are killed in any case: to the first process, -1 means all others. They may take a while to go with all
/// their memory, so it answers when it has no child but the one that counts its children.
pub(crate) fn program(limit: Duration) -> String {
    let take = take();
    let limit = limit.as_secs();
    format!(
        "#!/bin/busybox sh
export PATH=/bin HOME=/
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts /tmp
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t devpts pts /dev/pts
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
exec </dev/ttyS1 >/dev/ttyS1
stty raw -echo
echo '{READY}'
while {take} >/run/script; do
    cd /tmp
    timeout -s KILL {limit} setsid sh /run/script </dev/null >/run/output 2>/run/errors
    status=$?
    kill -KILL -1
    while [ $(wc -w </proc/1/task/1/children) -gt 1 ]; do :; done
    echo $status $(stat -c %s /run/output /run/errors)
    cat /run/output /run/errors
done
"
    )
}

/// The lines that make the agent run a script.
///
/// # Panics
/// If a line of the script would end it.
pub(crate) fn question(script: &str) -> String {
    assert!(
        script.lines().all(|line| line != END),
        "a line with nothing but a dot would end the script: {script}"
    );
    format!("{}\n{END}\n", script.trim_end())
}

/// Reads on until the agent is ready, which counts as an answer without content.
pub(crate) fn wait_until_ready(from: &mut impl BufRead) -> io::Result<Ran> {
    let mut line = String::new();
    while !line.trim_end().ends_with(READY) {
        line.clear();
        if from.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(Ran { output: String::new(), errors: String::new(), status: 0 })
}

/// Reads the answer to a question.
pub(crate) fn answer(from: &mut impl BufRead) -> io::Result<Ran> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [status, output, errors] = numbers[..] else {
        return Err(io::Error::other(format!("no answer but {line:?}")));
    };
    let mut text = |length| {
        let mut bytes = vec![];
        from.take(length).read_to_end(&mut bytes)?;
        io::Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let status = i32::try_from(status).map_err(io::Error::other)?;
    Ok(Ran { output: text(output)?, errors: text(errors)?, status })
}

#[cfg(test)]
mod tests {
    use super::{READY, Ran, answer, question, take, wait_until_ready};
    use crate::tools::Tools;
    use std::fs;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};
    use std::thread::yield_now;

    #[test]
    fn a_child_that_ends_takes_no_input_away() {
        // Without the tools there are no guests, as other tests say.
        let Ok(tools) = Tools::find() else { return };
        let mut shell = Command::new(&tools.busybox);
        shell.args(["sh", "-c", &format!("sleep 1000 & echo $!; {}", take())]);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut port, mut output) =
            (shell.stdin.take().unwrap(), BufReader::new(shell.stdout.take().unwrap()));
        let mut child = String::new();
        output.read_line(&mut child).unwrap();
        let child: libc::pid_t = child.trim_end().parse().unwrap();

        port.write_all(b"first ").unwrap();
        let unread = || {
            let mut count: libc::c_int = 0;
            // SAFETY: the request writes one number.
            assert_eq!(unsafe { libc::ioctl(port.as_raw_fd(), libc::FIONREAD, &mut count) }, 0);
            count
        };
        while unread() > 0 {
            yield_now();
        }
        // SAFETY: a child of the shell, which has not waited for it.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        let runs =
            || fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| !stat.contains(") Z"));
        while runs() {
            yield_now();
        }
        port.write_all(b"last\n.\nnext").unwrap();
        let mut taken = String::new();
        output.read_to_string(&mut taken).unwrap();
        assert_eq!(taken, "first last\n");
        assert!(shell.wait().unwrap().success());
    }

    #[test]
    fn what_programs_print_is_not_taken_for_an_answer() {
        let mut port = "0 8 4\n1 1 1\n.\nbad\n3 0 0\n".as_bytes();
        let first = Ran { output: "1 1 1\n.\n".into(), errors: "bad\n".into(), status: 0 };
        assert_eq!(answer(&mut port).unwrap(), first);
        assert_eq!(answer(&mut port).unwrap().status, 3);
        assert!(answer(&mut port).is_err());
    }

    #[test]
    fn what_is_said_before_the_agent_is_passed_over() {
        let mut port = format!("firmware\nmore {READY}\r\n0 0 0\n");
        let mut bytes = port.as_bytes();
        wait_until_ready(&mut bytes).unwrap();
        assert_eq!(answer(&mut bytes).unwrap().status, 0);
        port.truncate(10);
        assert!(wait_until_ready(&mut port.as_bytes()).is_err());
    }

    #[test]
    #[should_panic(expected = "would end the script")]
    fn a_script_cannot_end_early() {
        question("cat <<E\n.\nE");
    }
}
