//! Threads and memory of processes, as the kernel shows them in `/proc`.

use crate::backend::Whom;
use crate::error::Error;
use gondwana_topology::ProcessorId;
use libc::c_int;
use std::fs;
use std::io;
use std::path::PathBuf;

/// The folder of a thread, or of the first thread of a process.
fn folder(whom: Whom) -> PathBuf {
    match whom {
        Whom::ThisThread => PathBuf::from("/proc/thread-self"),
        Whom::ThisProcess => PathBuf::from("/proc/self"),
        Whom::Thread(thread) => PathBuf::from(format!("/proc/self/task/{thread}")),
        Whom::Process(process) => PathBuf::from(format!("/proc/{process}")),
    }
}

/// There is no such thread or process.
pub(super) fn nobody(whom: Whom) -> Error {
    let sentence = match whom {
        Whom::Thread(thread) => format!("this process has no thread numbered {thread}"),
        Whom::Process(process) => format!("there is no process numbered {process}"),
        Whom::ThisThread | Whom::ThisProcess => {
            "the kernel does not tell of this process: /proc is not mounted".to_owned()
        }
    };
    Error::new(libc::ESRCH, sentence)
}

/// The numbers of the threads that are meant, in ascending order. Those that end are none any more: a thread that was
/// joined can be there for a moment.
pub(super) fn threads(whom: Whom) -> Result<Vec<c_int>, Error> {
    match whom {
        // The kernel's number for the calling thread, whichever it is.
        Whom::ThisThread => Ok(vec![0]),
        Whom::Thread(thread) if folder(whom).exists() => Ok(vec![thread]),
        Whom::Thread(_) => Err(nobody(whom)),
        Whom::ThisProcess | Whom::Process(_) => {
            let folder = fs::read_dir(folder(whom).join("task")).map_err(|_| nobody(whom))?;
            let running = folder.filter_map(|entry| {
                let entry = entry.ok()?;
                let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
                let number = entry.file_name().to_str()?.parse().ok()?;
                (!is_ending(&stat)).then_some(number)
            });
            let mut numbers: Vec<c_int> = running.collect();
            numbers.sort_unstable();
            Ok(numbers)
        }
    }
}

/// The processor on which a thread is, or was last.
pub(super) fn processor_of(whom: Whom) -> Result<ProcessorId, Error> {
    let stat = fs::read_to_string(folder(whom).join("stat")).map_err(|_| nobody(whom))?;
    processor_in(&stat).ok_or_else(|| Error::new(libc::ENOSYS, "/proc does not say where threads are"))
}

/// The field "processor" of a line of `stat`.
fn processor_in(stat: &str) -> Option<ProcessorId> {
    field(stat, 39).map(ProcessorId)
}

/// Whether a line of `stat` has the flag of a thread that has begun to end.
fn is_ending(stat: &str) -> bool {
    const PF_EXITING: u32 = 4;
    field::<u32>(stat, 9).is_some_and(|flags| flags & PF_EXITING != 0)
}

/// A numbered field of a line of `stat`, where the second is a name that may hold anything; the third or a later one.
fn field<T: std::str::FromStr>(stat: &str, number: usize) -> Option<T> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(number - 3)?.parse().ok()
}

/// Copies bytes of this process at an address that may be wrong; false if it is.
pub(super) fn peek(address: usize, bytes: &mut [u8]) -> bool {
    let to = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let from = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: the kernel writes to the buffer only, and checks the other address.
    let read =
        unsafe { libc::process_vm_readv(gondwana_sys::process(), &raw const to, 1, &raw const from, 1, 0) };
    if usize::try_from(read) == Ok(bytes.len()) {
        return true;
    }
    if read >= 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) {
        return false;
    }
    // Some sandboxes forbid the call. Then the program is trusted, as by any other library.
    // SAFETY: the caller says that the address came from the program as one that may be read.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_process_are_found() {
        // SAFETY: plain system calls.
        let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
        for whom in [Whom::ThisProcess, Whom::Process(process)] {
            let numbers = threads(whom).unwrap();
            assert!(numbers.contains(&process) && numbers.contains(&thread), "{numbers:?}");
        }
        assert_eq!(threads(Whom::Thread(thread)).unwrap(), [thread]);
        for (nobody, sentence) in [
            (Whom::Process(c_int::MAX), "there is no process numbered 2147483647"),
            (Whom::Thread(c_int::MAX), "this process has no thread numbered 2147483647"),
        ] {
            let error = threads(nobody).unwrap_err();
            assert_eq!((error.number, error.sentence.as_str()), (libc::ESRCH, sentence));
            assert_eq!(processor_of(nobody).unwrap_err(), error);
        }
    }

    #[test]
    fn a_program_may_be_called_anything() {
        let fields = (4..=52).map(|field| field.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(processor_in(&format!("7 (a) R) S {fields}")), Some(ProcessorId(39)));
        assert_eq!(processor_in("7 (a) S 1"), None);
        assert!(is_ending("7 (a) R 1 1 1 0 -1 4194372 0") && !is_ending("7 (a) R 1 1 1 0 -1 4194368 0"));
    }

    #[test]
    fn only_what_is_there_can_be_read() {
        let (there, mut bytes) = (*b"gondwana", [0; 8]);
        assert!(peek(there.as_ptr() as usize, &mut bytes));
        assert_eq!(bytes, there);
        assert!(!peek(8, &mut bytes));
    }
}
