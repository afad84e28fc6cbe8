//! Queues of messages and semaphores that the kernel keeps: threads wait for each other by them, whatever nodes they are on.

use super::channels::{NEW, locking};
use super::descriptors::{Place, close, place};
use super::{Buffer, with_buffers};
use crate::pthread::cancel::at_point_if;
use gondwana_page::to_usize;
use gondwana_sys::Argument;
use libc::{
    c_char, c_int, c_long, c_uint, c_ulong, c_void, mode_t, mq_attr, mqd_t, msqid_ds, sembuf, semid_ds,
    size_t, ssize_t, timespec,
};

/// The type of a message, which precedes it.
const TYPE: size_t = size_of::<c_long>();

crate::guarded! {
    fn mq_send[queue; locking queue](queue: mqd_t, text: *const c_char, length: size_t, priority: c_uint) -> c_int {
        Buffer::read(text, length)
    }
    fn mq_timedsend[queue; locking queue](queue: mqd_t, text: *const c_char, length: size_t, priority: c_uint,
        until: *const timespec) -> c_int { Buffer::read(text, length), Buffer::value(until) }
    fn mq_open[; opening NEW](name: *const c_char, flags: c_int, mode: mode_t, attributes: *mut mq_attr) -> mqd_t {
        Buffer::string(name), Buffer::value(if flags & libc::O_CREAT == 0 { std::ptr::null_mut() } else { attributes })
    }
    fn mq_unlink(name: *const c_char) -> c_int { Buffer::string(name) }
    fn mq_getattr[queue](queue: mqd_t, attributes: *mut mq_attr) -> c_int { Buffer::result(attributes) }
    fn mq_setattr[queue](queue: mqd_t, new: *const mq_attr, old: *mut mq_attr) -> c_int {
        Buffer::value(new), Buffer::result(old)
    }
    fn msgsnd[; locking queue](queue: c_int, message: *const c_void, length: size_t, flags: c_int) -> c_int {
        Buffer::read(message, TYPE + length)
    }
    fn semop[; locking set](set: c_int, operations: *mut sembuf, count: size_t) -> c_int {
        Buffer::read(operations, count * size_of::<sembuf>())
    }
    fn semtimedop[; locking set](set: c_int, operations: *mut sembuf, count: size_t, longest: *const timespec) -> c_int {
        Buffer::read(operations, count * size_of::<sembuf>()), Buffer::value(longest)
    }
}

/// A queue is a descriptor, as any other.
///
/// # Safety
/// As the C library's `mq_close`.
#[unsafe(no_mangle)]
unsafe extern "C" fn mq_close(queue: mqd_t) -> c_int {
    // SAFETY: forwards the caller's argument.
    unsafe { close(queue) }
}

crate::guarded! {
    fn msgctl[; locking queue](queue: c_int, command: c_int, description: *mut msqid_ds) -> c_int {
        match command {
            libc::IPC_SET => Buffer::value(description),
            libc::IPC_STAT | libc::MSG_STAT | MSG_STAT_ANY => Buffer::result(description),
            IPC_INFO | libc::MSG_INFO => Buffer::result(description.cast::<[c_int; 8]>()),
            _ => NOTHING,
        }
    }
    fn semctl[; locking set](set: c_int, number: c_int, command: c_int, argument: c_ulong) -> c_int {
        match command {
            libc::IPC_SET => Buffer::value(argument as *const semid_ds),
            libc::IPC_STAT | libc::SEM_STAT | libc::SEM_STAT_ANY => Buffer::result(argument as *mut semid_ds),
            IPC_INFO | libc::SEM_INFO => Buffer::result(argument as *mut [c_int; 10]),
            libc::SETALL => Buffer::read(argument as *const u16, values_of(set)),
            libc::GETALL => Buffer::write(argument as *mut u16, values_of(set)),
            _ => NOTHING,
        }
    }
}

/// Commands that the kernel knows beside those of the standard.
const IPC_INFO: c_int = 3;
const MSG_STAT_ANY: c_int = 13;

/// A command without memory.
const NOTHING: Buffer = Buffer { start: 0, length: 0, usage: super::buffers::Use::Read };

/// Bytes of the values of a set of semaphores; 0 for one that the caller may not see.
fn values_of(set: c_int) -> usize {
    // SAFETY: zero is a valid value.
    let mut description: Box<semid_ds> = Box::new(unsafe { std::mem::zeroed() });
    let before = crate::errno::get();
    // SAFETY: a private place for the result.
    let failed =
        unsafe { gondwana_sys::syscall!(libc::SYS_semctl, set, 0, libc::IPC_STAT, &raw mut *description) };
    crate::errno::set(before);
    if failed == 0 { to_usize(description.sem_nsems) * size_of::<u16>() } else { 0 }
}

/// Receives a message into private memory, and then into the program's: the kernel has taken the message when it writes. `receive` gets
/// the memory, and a place for the message's priority; its result is the length without the `head` bytes before the text.
///
/// # Safety
/// There is room for so many bytes, and for the priority unless that is null.
unsafe fn received(
    (memory, length): (*mut u8, size_t),
    head: size_t,
    priority: *mut c_uint,
    receive: impl FnOnce(*mut u8, *mut c_uint) -> ssize_t,
) -> ssize_t {
    let (mut own, mut own_priority) = (vec![0_u8; length], Box::new(0));
    let result = receive(own.as_mut_ptr(), &raw mut *own_priority);
    if let Ok(text) = usize::try_from(result) {
        // SAFETY: as promised.
        unsafe {
            std::ptr::copy_nonoverlapping(own.as_ptr(), memory, (head + text).min(length));
            if !priority.is_null() {
                *priority = *own_priority;
            }
        }
    }
    result
}

/// Defines functions that receive from a POSIX message queue.
macro_rules! receiving {
    ($($name:ident($($until:ident: $type:ty)?);)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name(
            queue: mqd_t,
            text: *mut c_char,
            length: size_t,
            priority: *mut c_uint,
            $($until: $type,)?
        ) -> ssize_t {
            locking(queue, || at_point_if(true, || match place(&[queue], stringify!($name)) {
                // SAFETY: the caller's promise.
                Place::Here => unsafe {
                    received((text.cast(), length), 0, priority, |text, priority| {
                        with_buffers(&[$(Buffer::value($until))?], || {
                            crate::real!($name: fn(mqd_t, *mut c_char, size_t, *mut c_uint $(, $type)?) -> ssize_t)(
                                queue, text.cast(), length, priority $(, $until)?
                            )
                        })
                    })
                },
                Place::There(there) => {
                    let words = [queue.word(), text.word(), length.word(), priority.word() $(, $until.word())?];
                    let buffers = [Buffer::write(text, length), Buffer::result(priority) $(, Buffer::value($until))?];
                    there.call(stringify!($name), &words, &buffers)
                }
                Place::Nowhere => -1,
            }))
        }
    )*};
}

receiving! {
    mq_receive();
    mq_timedreceive(until: *const timespec);
}

/// # Safety
/// As the C library's `msgrcv`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn msgrcv(
    queue: c_int,
    message: *mut c_void,
    length: size_t,
    kind: c_long,
    flags: c_int,
) -> ssize_t {
    let real = crate::real!(msgrcv: fn(c_int, *mut c_void, size_t, c_long, c_int) -> ssize_t);
    // SAFETY: the caller's promise.
    let receive = || unsafe {
        received((message.cast(), TYPE + length), TYPE, std::ptr::null_mut(), |message, _| {
            real(queue, message.cast(), length, kind, flags)
        })
    };
    locking(queue, || at_point_if(true, receive))
}
