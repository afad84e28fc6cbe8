//! Which functions of system calls are cancellation points.

const POINTS: &[&str] = &[
    "accept",
    "accept4",
    "connect",
    "copy_file_range",
    "creat",
    "creat64",
    "epoll_wait",
    "fallocate",
    "fallocate64",
    "fdatasync",
    "fsync",
    "mq_send",
    "mq_timedreceive",
    "mq_timedsend",
    "msgrcv",
    "msgsnd",
    "msync",
    "pread",
    "pread64",
    "preadv",
    "preadv2",
    "preadv64",
    "preadv64v2",
    "pwrite",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "pwritev64",
    "pwritev64v2",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "send",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "splice",
    "sync_file_range",
    "tcdrain",
    "tee",
    "vmsplice",
    "wait",
    "wait3",
    "wait4",
    "waitid",
    "waitpid",
    "write",
    "writev",
];

/// True for the name of a cancellation point; computed by the compiler.
pub(crate) const fn is_point(name: &str) -> bool {
    let mut index = 0;
    while index < POINTS.len() {
        let (a, b) = (POINTS[index].as_bytes(), name.as_bytes());
        let mut at = 0;
        while at < a.len() && at < b.len() && a[at] == b[at] {
            at += 1;
        }
        if at == a.len() && at == b.len() {
            return true;
        }
        index += 1;
    }
    false
}
