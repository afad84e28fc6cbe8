//! Threads of other processes, stopped for a moment. All `unsafe` code of this crate is here.
//!
//! Threads are stopped by `PTRACE_INTERRUPT`, which sends no signal. The kernel then begins most system calls again by itself,
//! with what is left of their time. A few would fail with `EINTR` though nobody has sent a signal, such as `epoll_wait`: their
//! result is replaced by the one that has the kernel begin them again.

use libc::{c_int, c_void, pid_t, user_regs_struct};
use std::io;
use std::ptr::null_mut;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a thread may take to stop: one that waits for a disk cannot be stopped before it has what it waits for.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it is looked whether it has.
const MOMENT: Duration = Duration::from_micros(50);

/// The kernel's result that has a system call begin again, unless a handler of a signal runs: then it is `EINTR`.
const ERESTARTNOHAND: i64 = 514;

/// A thread that is stopped as long as this value lives.
pub(crate) struct Stopped {
    task: pid_t,
    /// A signal was about to be delivered to it.
    signal: c_int,
}

/// The registers of a thread.
pub(crate) type Registers = user_regs_struct;

fn ptrace(request: u32, task: pid_t, address: *mut c_void, data: *mut c_void) -> io::Result<()> {
    // SAFETY: the callers pass null, a number, or a place for registers that lives during the call.
    if unsafe { libc::ptrace(request, task, address, data) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

impl Stopped {
    /// Stops a thread that nobody else traces.
    pub(crate) fn stop(task: u32) -> io::Result<Self> {
        let task = pid_t::try_from(task).map_err(io::Error::other)?;
        ptrace(libc::PTRACE_SEIZE, task, null_mut(), null_mut())?;
        ptrace(libc::PTRACE_INTERRUPT, task, null_mut(), null_mut())?;
        let end = Instant::now() + PATIENCE;
        loop {
            let mut status = 0;
            // SAFETY: the kernel writes one status. Only the tracing thread takes the stops of what it traces.
            let result = unsafe { libc::waitpid(task, &raw mut status, libc::WNOHANG | libc::__WALL) };
            match result {
                0 if Instant::now() < end => sleep(MOMENT),
                // It is traced until this thread ends, which changes nothing for it.
                0 => return Err(io::Error::other("it waits in the kernel and cannot be stopped")),
                result if result == task && libc::WIFSTOPPED(status) => {
                    let by_event = status >> 16 == libc::PTRACE_EVENT_STOP;
                    let signal = if by_event { 0 } else { libc::WSTOPSIG(status) };
                    return Ok(Self { task, signal });
                }
                result if result == task => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
                _ => return Err(io::Error::last_os_error()),
            }
        }
    }

    /// Its registers.
    pub(crate) fn registers(&self) -> io::Result<Registers> {
        // SAFETY: integers, for which zero is valid.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        ptrace(libc::PTRACE_GETREGS, self.task, null_mut(), (&raw mut registers).cast())?;
        Ok(registers)
    }

    /// Has a system call begin again that this stop has ended.
    fn restart_call(&self) -> io::Result<()> {
        let mut registers = self.registers()?;
        let interrupted = registers.rax.cast_signed() == -i64::from(libc::EINTR);
        if self.signal == 0 && registers.orig_rax.cast_signed() >= 0 && interrupted {
            registers.rax = (-ERESTARTNOHAND).cast_unsigned();
            ptrace(libc::PTRACE_SETREGS, self.task, null_mut(), (&raw mut registers).cast())?;
        }
        Ok(())
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // A thread that has died meanwhile needs neither.
        let _ = self.restart_call();
        let signal = usize::try_from(self.signal).unwrap_or_default() as *mut c_void;
        let _ = ptrace(libc::PTRACE_DETACH, self.task, null_mut(), signal);
    }
}
