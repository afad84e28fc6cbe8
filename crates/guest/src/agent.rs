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

/// The program of the first process. It gives each script `limit`; a script that takes longer is killed. Processes that
/// it has left are killed in any case: to the first process, -1 means all others.
pub(crate) fn program(limit: Duration) -> String {
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
while IFS= read -r line; do
    if [ \"$line\" != '{END}' ]; then
        printf '%s\\n' \"$line\" >>/run/script
        continue
    fi
    cd /tmp
    timeout -s KILL {limit} setsid sh /run/script </dev/null >/run/output 2>/run/errors
    status=$?
    kill -KILL -1
    echo $status $(stat -c %s /run/output /run/errors)
    cat /run/output /run/errors
    rm /run/script
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
    Ok(Ran { output: text(output)?, errors: text(errors)?, status: status as i32 })
}

#[cfg(test)]
mod tests {
    use super::{READY, Ran, answer, question, wait_until_ready};

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
