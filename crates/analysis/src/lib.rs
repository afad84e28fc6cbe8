//! Analyses a recording: remote data, its users, and what to change. The method is that of Opium (Olifant, section
//! 6).
//!
//! Pure: the caller provides names of addresses through [`Names`].

#![forbid(unsafe_code)]

mod advice;
mod analyse;
mod apportion;
mod areas;
mod atomics;
mod constructs;
mod filters;
mod flows;
mod layouts;
mod locks;
mod named_parts;
mod names;
mod naming;
mod numbers;
mod object_table;
mod page_uses;
mod picture_cells;
mod range_set;
mod recording_notes;
mod result;
mod row_sums;
mod sharing;
mod timeline;
mod written_bytes;

pub use advice::{Advice, AdviceKind, Entry, advise, plan};
pub use analyse::analyse;
pub use layouts::{Layout, Layouts, Member};
pub use names::{Code, Names, NoNames, Variable};
pub use object_table::{ObjectSeries, ObjectTable};
pub use page_uses::{HomeUse, PageUse};
pub use result::{
    Analysis, Area, AreaNode, AtomicVariable, BankFilter, Cell, CodePlace, Construct, ConstructThread,
    FalselySharedPage, Field, Flow, HotUnit, LockHandOffs, NamedPart, NodeTotal, Origin, Pattern, ThreadInfo,
    TimelineSlot, Totals, UsedBytes,
};
