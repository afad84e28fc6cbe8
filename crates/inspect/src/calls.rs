//! The system calls that threads wait in.

use std::fs;

/// A system call that a thread is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub number: i64,
    /// Its name, if it is one in which threads usually wait.
    pub name: Option<&'static str>,
    /// The descriptor that it is about, with what the descriptor leads to.
    pub descriptor: Option<(u64, String)>,
}

/// Calls in which threads wait, and whether their first argument is a descriptor.
const CALLS: [(i64, &str, bool); 35] = [
    (libc::SYS_read, "read", true),
    (libc::SYS_write, "write", true),
    (libc::SYS_readv, "readv", true),
    (libc::SYS_writev, "writev", true),
    (libc::SYS_pread64, "pread64", true),
    (libc::SYS_pwrite64, "pwrite64", true),
    (libc::SYS_accept, "accept", true),
    (libc::SYS_accept4, "accept4", true),
    (libc::SYS_connect, "connect", true),
    (libc::SYS_recvfrom, "recvfrom", true),
    (libc::SYS_recvmsg, "recvmsg", true),
    (libc::SYS_sendto, "sendto", true),
    (libc::SYS_sendmsg, "sendmsg", true),
    (libc::SYS_epoll_wait, "epoll_wait", true),
    (libc::SYS_epoll_pwait, "epoll_pwait", true),
    (libc::SYS_flock, "flock", true),
    (libc::SYS_fcntl, "fcntl", true),
    (libc::SYS_fsync, "fsync", true),
    (libc::SYS_poll, "poll", false),
    (libc::SYS_ppoll, "ppoll", false),
    (libc::SYS_select, "select", false),
    (libc::SYS_pselect6, "pselect6", false),
    (libc::SYS_futex, "futex", false),
    (libc::SYS_nanosleep, "nanosleep", false),
    (libc::SYS_clock_nanosleep, "clock_nanosleep", false),
    (libc::SYS_wait4, "wait4", false),
    (libc::SYS_waitid, "waitid", false),
    (libc::SYS_pause, "pause", false),
    (libc::SYS_rt_sigsuspend, "rt_sigsuspend", false),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait", false),
    (libc::SYS_semop, "semop", false),
    (libc::SYS_semtimedop, "semtimedop", false),
    (libc::SYS_msgrcv, "msgrcv", false),
    (libc::SYS_msgsnd, "msgsnd", false),
    (libc::SYS_sched_yield, "sched_yield", false),
];

/// The system call that a thread is in; `None` if it runs, or that is unknown.
pub(crate) fn now(process: u32, task: u32) -> Option<Call> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{task}/syscall")).ok()?;
    call_of(&text, |descriptor| {
        let path = fs::read_link(format!("/proc/{process}/fd/{descriptor}")).unwrap_or_default();
        path.to_string_lossy().into_owned()
    })
}

/// Reads the kernel's line about a thread, such as `0 0x3 0x7f... 0x400 ...`. What a descriptor leads to is asked.
#[must_use]
pub fn call_of(text: &str, leads_to: impl Fn(u64) -> String) -> Option<Call> {
    let mut words = text.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok().filter(|number| *number >= 0)?;
    let first = words.next().and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let known = CALLS.iter().find(|(known, ..)| *known == number);
    let descriptor = first.filter(|_| known.is_some_and(|(_, _, is_about_one)| *is_about_one));
    Some(Call {
        number,
        name: known.map(|(_, name, _)| *name),
        descriptor: descriptor.map(|descriptor| (descriptor, leads_to(descriptor))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_and_its_descriptor_are_read() {
        let of = |text| call_of(text, |descriptor| format!("file {descriptor}"));
        let call = of("0 0x3 0x7ffe 0x400 0x0 0x0 0x0 0x7ffd 0x7f00\n").unwrap();
        assert_eq!((call.name, call.descriptor), (Some("read"), Some((3, "file 3".to_owned()))));
        let call = of("202 0x7f00 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n").unwrap();
        assert_eq!((call.name, call.descriptor), (Some("futex"), None));
        assert_eq!(of("9999 0x1\n").unwrap().name, None);
        assert_eq!(of("running\n"), None);
        assert_eq!(of("-1 0x7ffd 0x7f00\n"), None, "it waits outside of system calls");
        assert_eq!(of(""), None);
    }
}
