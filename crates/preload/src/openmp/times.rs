//! For the monitor: how long threads work before a barrier, and how long they wait there.
//!
//! While nothing is recorded, each barrier looks at a flag and no clock.

use super::context::{self, Context};
use crate::private_stack::uninterrupted;
use gondwana_node::{MonitoredConstruct, Node};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// What a barrier ends.
#[derive(Clone, Copy)]
pub(super) enum Ends {
    /// The region.
    Region,
    /// The construct with the call that returns to this address.
    Call(usize),
}

thread_local! {
    /// How long the calling thread has run tasks at the barrier where it is.
    static ASIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The time, if it is recorded.
pub(super) fn now() -> Option<Instant> {
    Node::current()?.time_of_construct()
}

/// The calling thread has left a construct without a barrier, by a call that returns to this address.
pub(super) fn ended(returns_to: usize) {
    if Node::current().is_some_and(Node::records_constructs) {
        context::update(|context| context.ended = returns_to);
    }
}

/// Does something at a barrier that is no waiting.
pub(super) fn aside(act: impl FnOnce()) {
    let Some(begun) = now() else { return act() };
    act();
    ASIDE.set(ASIDE.get() + begun.elapsed());
}

/// The calling thread, which is in `context`, has waited at a barrier since `arrived`. Returns the time.
pub(super) fn record(context: &Context, ends: Ends, arrived: Instant) -> Option<Instant> {
    let left = now()?;
    let aside = ASIDE.take();
    if let (Some(since), Some(node)) = (context.since, Node::current()) {
        let (code, region) = match ends {
            Ends::Region if context.ended == 0 => (context.region, true),
            Ends::Region => (context.ended.wrapping_sub(1), true),
            Ends::Call(returns_to) => (returns_to.wrapping_sub(1), false),
        };
        let construct = MonitoredConstruct { code, region, dealt: context.dealt };
        let worked = arrived.saturating_duration_since(since) + aside;
        let waited = left.saturating_duration_since(arrived).saturating_sub(aside);
        uninterrupted(move || node.record_construct(construct, worked, waited));
    }
    Some(left)
}

/// Defines functions of compilers that pass to another one, in the register behind their arguments, where they return to.
macro_rules! telling_return {
    ($($register:literal: $($name:ident by $function:ident)*;)*) => {$($(
        /// # Safety
        /// Called by code that a compiler has made.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            std::arch::naked_asm!(concat!("mov ", $register, ", [rsp]"), "jmp {}", sym $function)
        }
    )*)*};
}

pub(super) use telling_return;
