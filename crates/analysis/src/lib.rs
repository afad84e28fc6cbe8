//! What a recording tells: which data is remote, who touches it, and what to change. After Opium's methodology
//! (Olifant, section 6).
//!
//! Pure: names of addresses come from whoever can read the program's files, by way of [`Names`].

#![forbid(unsafe_code)]

mod advice;
mod analyse;
mod areas;
mod cells;
mod filters;
mod flows;
mod layouts;
mod locks;
mod names;
mod naming;
mod notes;
mod page_uses;
mod parts;
mod result;
mod rows;
mod sharing;
mod span;
mod split;
mod things;
mod timeline;
mod written;

pub use advice::{Advice, AdviceKind, Entry, advise, plan};
pub use analyse::analyse;
pub use layouts::{Layout, Layouts, Member};
pub use names::{Code, Names, NoNames, Variable};
pub use result::{
    Analysis, Area, AreaNode, BankFilter, Cell, Field, Flow, HotUnit, Lock, NodeTotal, Origin, PageUse, Part,
    Pattern, Place, Shared, Slot, ThreadInfo, Totals, Writer,
};
pub use things::{Thing, Things};
