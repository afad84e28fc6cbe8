//! `epoll`, also on descriptors that other nodes have open.
//!
//! The node that has such a descriptor has a *mirror* of the `epoll` descriptor: another one, on which it adds the descriptor with the
//! program's events and data. The `epoll` descriptor itself has an event that a [`Watch`] of the mirror makes readable. A wait that
//! finds this event asks the mirror, without waiting; so whatever the program has chosen (level or edge, once, exclusively) holds
//! there.

use super::event::Event;
use super::place::{Place, place};
use super::sets::{left, milliseconds, of_milliseconds, of_time};
use super::stops::Numbers;
use super::there::There;
use super::watch::Watch;
use crate::accesses;
use crate::io::channels::waiting;
use crate::io::{Buffer, with_buffers};
use crate::numbers::{after, int, many};
use crate::private_stack::uninterrupted;
use crate::pthread::cancel::at_point_if;
use crate::signals::{with_mask, without_faults};
use gondwana_locks::lock;
use gondwana_node::Node;
use gondwana_sys::Argument;
use libc::{c_int, epoll_event, pollfd, sigset_t, timespec};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The mirror of an `epoll` descriptor of this node on another one.
struct Mirror {
    /// The descriptor and the node that it is the mirror of.
    of: (c_int, usize),
    there: There,
    /// Its number there.
    number: c_int,
    event: Arc<Event>,
    /// The wait for the mirror, while there is one.
    watch: Mutex<Option<Watch>>,
}

/// Mirrors, by the data of their events.
type Mirrors = BTreeMap<u64, Arc<Mirror>>;

/// All mirrors.
static MIRRORS: Mutex<Mirrors> = Mutex::new(BTreeMap::new());

fn with_mirrors<R>(call: impl FnOnce(&mut Mirrors) -> R) -> R {
    uninterrupted(|| call(&mut lock(&MIRRORS)))
}

/// There has been a mirror.
static ANY: AtomicBool = AtomicBool::new(false);

/// The data of events of mirrors are addresses in here, where the program has nothing.
static MARKS: [u8; 4096] = [0; 4096];

fn marks() -> Range<u64> {
    let first = MARKS.as_ptr() as u64;
    first..first + MARKS.len() as u64
}

impl Mirror {
    /// Waits until something is ready there, unless a thread does.
    fn watch(self: &Arc<Self>) {
        uninterrupted(|| {
            let mut present = lock(&self.watch);
            if present.as_ref().is_none_or(Watch::is_over) {
                let set = vec![pollfd { fd: self.number, events: libc::POLLIN, revents: 0 }];
                let event = Arc::clone(&self.event);
                *present = Some(Watch::begin(self.there, set, move || event.notify()));
            }
        });
    }

    /// What is ready there, at most so much.
    fn ready(&self, most: usize) -> Vec<epoll_event> {
        let mut events = vec![epoll_event { events: 0, u64: 0 }; most];
        let words = [self.number.into(), events.as_mut_ptr().word(), most.word(), 0];
        let buffer = Buffer::write(events.as_mut_ptr(), most * size_of::<epoll_event>());
        let count: c_int = self.there.call("epoll_wait", &words, &[buffer]);
        events.truncate(usize::try_from(count).unwrap_or(0));
        events
    }
}

/// The mirror of a descriptor at a node, made if it is not there yet; the error is an error number.
fn mirror(epoll: c_int, there: There) -> Result<Arc<Mirror>, c_int> {
    let of = (epoll, there.owner);
    if let Some(known) = with_mirrors(|all| known(all, of)) {
        return Ok(known);
    }
    let number: c_int = there.call("epoll_create1", &[libc::EPOLL_CLOEXEC.into()], &[]);
    if number < 0 {
        return Err(crate::errno::get());
    }
    let close = |error| {
        let _: c_int = there.call("close", &[number.into()], &[]);
        error
    };
    let event = Arc::new(Event::new().map_err(close)?);
    let added = with_mirrors(|all| match known(all, of) {
        // Another thread has been faster.
        Some(known) => Ok((known, false)),
        None => Ok((add(all, Mirror { of, there, number, event, watch: Mutex::new(None) })?, true)),
    });
    let (mirror, is_new) = added.map_err(close)?;
    if is_new {
        mirror.watch();
    } else {
        close(0);
    }
    Ok(mirror)
}

/// Adds a mirror's event to its `epoll` descriptor; the error is an error number.
fn add(all: &mut Mirrors, mirror: Mirror) -> Result<Arc<Mirror>, c_int> {
    let data = marks().find(|data| !all.contains_key(data)).ok_or(libc::EMFILE)?;
    let mut event = Box::new(epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: data });
    let (epoll, number) = (mirror.of.0, mirror.event.number());
    // SAFETY: the event is private.
    let failed = unsafe {
        gondwana_sys::syscall!(libc::SYS_epoll_ctl, epoll, libc::EPOLL_CTL_ADD, number, &raw mut *event) != 0
    };
    if failed {
        return Err(crate::errno::get());
    }
    let mirror = Arc::new(mirror);
    all.insert(data, Arc::clone(&mirror));
    ANY.store(true, Ordering::SeqCst);
    Ok(mirror)
}

fn known(all: &Mirrors, of: (c_int, usize)) -> Option<Arc<Mirror>> {
    all.values().find(|mirror| mirror.of == of).cloned()
}

/// A descriptor of this node was closed: its mirrors go.
pub(super) fn forget(number: c_int) {
    if !ANY.load(Ordering::Relaxed) {
        return;
    }
    let gone: Vec<Arc<Mirror>> = with_mirrors(|all| {
        let is_of = |mirror: &Mirror| mirror.of.0 == number;
        let gone = all.values().filter(|mirror| is_of(mirror)).cloned().collect();
        all.retain(|_, mirror| !is_of(mirror));
        gone
    });
    for mirror in gone {
        uninterrupted(|| lock(&mirror.watch).take()).map(Watch::end);
        let _: c_int = mirror.there.call("close", &[mirror.number.into()], &[]);
    }
}

/// # Safety
/// As the C library's `epoll_ctl`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn epoll_ctl(
    epoll: c_int,
    operation: c_int,
    other: c_int,
    event: *mut epoll_event,
) -> c_int {
    let words = [epoll.into(), operation.into(), other.into(), event.word()];
    match place(&[epoll], "epoll_ctl") {
        Place::Here => {}
        Place::There(there) => return there.call("epoll_ctl", &words, &[Buffer::value(event)]),
        Place::Nowhere => return -1,
    }
    match place(&[other], "epoll_ctl") {
        Place::Here => with_buffers(&[Buffer::value(event)], || {
            // SAFETY: forwards the caller's arguments.
            unsafe {
                crate::real!(epoll_ctl: fn(c_int, c_int, c_int, *mut epoll_event) -> c_int)(
                    epoll, operation, other, event,
                )
            }
        }),
        Place::There(there) => match mirror(epoll, there) {
            Ok(mirror) => {
                let words = [mirror.number.into(), operation.into(), other.into(), event.word()];
                there.call("epoll_ctl", &words, &[Buffer::value(event)])
            }
            Err(error) => {
                crate::errno::set(error);
                -1
            }
        },
        Place::Nowhere => -1,
    }
}

/// Replaces the events of mirrors among `ready` by what is ready there. Gives how many there are then. All mirrors of a descriptor that
/// is `asked_at_once` are asked, because their events come a moment later than what they tell.
fn with_mirrored(events: &mut [epoll_event], ready: usize, asked_at_once: Option<c_int>) -> usize {
    // A mirror may have come while the thread waited.
    if !ANY.load(Ordering::SeqCst) {
        return ready;
    }
    let all = with_mirrors(|all| all.clone());
    let told = |data: u64| events[..ready].iter().any(|event| { event.u64 } == data);
    let mirrors: Vec<&Arc<Mirror>> = all
        .iter()
        .filter(|(data, mirror)| told(**data) || asked_at_once == Some(mirror.of.0))
        .map(|(_, mirror)| mirror)
        .collect();
    // One may have gone meanwhile.
    let mut found: Vec<epoll_event> =
        events[..ready].iter().filter(|event| !marks().contains(&{ event.u64 })).copied().collect();
    for mirror in mirrors {
        // Ahead of the question: what is ready after it is notified again.
        mirror.event.forget();
        if found.len() < events.len() {
            found.extend(mirror.ready(events.len() - found.len()));
        }
        mirror.watch();
    }
    events[..found.len()].copy_from_slice(&found);
    found.len()
}

/// `epoll_pwait` by this process, at most so long.
fn wait_here(
    epoll: c_int,
    most: c_int,
    longest: Option<Duration>,
    mask: Option<&sigset_t>,
) -> Result<Vec<epoll_event>, c_int> {
    // The kernel reads private memory.
    let mask = mask.map(|mask| Box::new(*mask));
    let mask = mask.as_deref().map_or(std::ptr::null(), std::ptr::from_ref);
    let until = longest.and_then(after);
    let at_once = longest.filter(Duration::is_zero).map(|_| epoll);
    let mut events = vec![epoll_event { events: 0, u64: 0 }; many(most)];
    loop {
        let left = left(until);
        // SAFETY: the events are private, and as many as told.
        let count = unsafe {
            gondwana_sys::syscall!(
                libc::SYS_epoll_pwait,
                epoll,
                events.as_mut_ptr(),
                most,
                left,
                mask,
                size_of::<u64>()
            )
        };
        let Ok(count) = usize::try_from(count) else { return Err(crate::errno::get()) };
        let found = with_mirrored(&mut events, count, at_once);
        if found > 0 || count == 0 || left == 0 {
            events.truncate(found);
            return Ok(events);
        }
    }
}

/// Who makes a wait.
enum Waiter {
    /// This process, a node.
    Here,
    /// The node that has the descriptor.
    There(There),
    /// Nobody.
    Nowhere,
}

impl Waiter {
    /// Who waits for a descriptor; `None` in a process that is no node of several: the C library's function.
    fn of(epoll: c_int, name: &str) -> Option<Self> {
        Node::current().filter(|_| Numbers::get().is_some())?;
        Some(match place(&[epoll], name) {
            Place::Here => Self::Here,
            Place::There(there) => Self::There(there),
            Place::Nowhere => Self::Nowhere,
        })
    }

    /// Waits at most so long, with another mask of signals if one is given.
    ///
    /// # Safety
    /// There is room for so many events.
    unsafe fn wait(
        self,
        epoll: c_int,
        (events, most): (*mut epoll_event, c_int),
        longest: Option<Duration>,
        mask: Option<&sigset_t>,
    ) -> c_int {
        match self {
            Self::Here => match wait_here(epoll, most, longest, mask) {
                Ok(found) => {
                    let bytes = size_of_val(found.as_slice());
                    // SAFETY: as promised.
                    if unsafe { accesses::copy(found.as_ptr().cast(), events.cast(), bytes) } < bytes {
                        crate::errno::set(libc::EFAULT);
                        return -1;
                    }
                    int(found.len())
                }
                Err(error) => {
                    crate::errno::set(error);
                    -1
                }
            },
            Self::There(there) => with_mask(mask, || {
                let words =
                    [epoll.into(), events.word(), most.into(), longest.map_or(-1, milliseconds).into()];
                let room = Buffer::write(events, many(most) * size_of::<epoll_event>());
                there.call("epoll_wait", &words, &[room])
            }),
            Self::Nowhere => -1,
        }
    }
}

/// # Safety
/// As the C library's `epoll_wait`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: forwards the caller's arguments.
    let call = || unsafe {
        match Waiter::of(epoll, "epoll_wait") {
            Some(waiter) => waiter.wait(epoll, (events, most), of_milliseconds(timeout), None),
            None => crate::real!(epoll_wait: fn(c_int, *mut epoll_event, c_int, c_int) -> c_int)(
                epoll, events, most, timeout,
            ),
        }
    };
    waiting(|| at_point_if(true, call))
}

/// Defines functions that wait for events with a temporary signal mask.
macro_rules! waiting_for_events {
    ($($name:ident($timeout:ident: $type:ty) $longest:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name(
            epoll: c_int,
            events: *mut epoll_event,
            most: c_int,
            $timeout: $type,
            mask: *const sigset_t,
        ) -> c_int {
            // SAFETY: the caller passes null or a set; the call gets a copy.
            let own = unsafe { without_faults(libc::SIG_SETMASK, mask) };
            // SAFETY: forwards the caller's arguments.
            let call = || unsafe {
                match Waiter::of(epoll, stringify!($name)) {
                    Some(waiter) => waiter.wait(epoll, (events, most), $longest, own.as_ref()),
                    None => {
                        crate::real!($name: fn(c_int, *mut epoll_event, c_int, $type, *const sigset_t) -> c_int)(
                            epoll, events, most, $timeout, mask,
                        )
                    }
                }
            };
            waiting(|| at_point_if(true, call))
        }
    )*};
}

waiting_for_events! {
    epoll_pwait(timeout: c_int) of_milliseconds(timeout);
    epoll_pwait2(timeout: *const timespec) of_time(timeout);
}
