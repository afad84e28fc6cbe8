//! Resource limits of this process (`ulimit`), and system errors explained by the limit that caused them.

use std::io;

/// The present limit of a resource; `u64::MAX` if there is none.
pub fn limit(resource: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel writes one rlimit.
    unsafe { libc::getrlimit(resource, &raw mut limit) };
    limit.rlim_cur
}

/// An error of the system, with the resource limit that caused it, if one did.
pub fn explained(error: &io::Error) -> String {
    let hint = match error.raw_os_error() {
        Some(libc::EFBIG) => {
            over("files", "f", limit(libc::RLIMIT_FSIZE), |bytes| format!("{} KiB", bytes >> 10))
        }
        Some(libc::EAGAIN) => {
            over("processes and threads", "u", limit(libc::RLIMIT_NPROC), |count| count.to_string())
        }
        Some(libc::ENOMEM) => {
            over("addresses", "v", limit(libc::RLIMIT_AS), |bytes| format!("{} MiB", bytes >> 20))
        }
        _ => None,
    };
    hint.map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}"))
}

fn over(what: &str, letter: &str, limit: u64, shown: impl Fn(u64) -> String) -> Option<String> {
    (limit != u64::MAX)
        .then(|| format!("the limit on {what} is {}: raise it (ulimit -{letter} unlimited)", shown(limit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_without_a_limit_stay_as_they_are() {
        let error = io::Error::from_raw_os_error(libc::ENOENT);
        assert_eq!(explained(&error), error.to_string());
    }
}
