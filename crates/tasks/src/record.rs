//! What is known of tasks.

use gondwana_topology::NodeId;

/// A task, or the implicit task of a thread, among those of its node and team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId(pub u32);

/// A task that was given to another node, for these two. Never used again in this team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AwayId(pub u64);

impl AwayId {
    pub(crate) fn new(task: TaskId, serial: u32) -> Self {
        Self(u64::from(serial) << 32 | u64::from(task.0))
    }

    pub(crate) fn task(self) -> u32 {
        u32::try_from(self.0 & u64::from(u32::MAX)).expect("the lower half")
    }
}

/// The tasks of a `taskgroup`, likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupId(pub(crate) u32);

/// A ledger, likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LedgerId(pub(crate) u32);

/// The ledger of the tasks whose first ancestor was made on this node.
pub(crate) const OWN: LedgerId = LedgerId(0);

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Work {
    /// The address of its function.
    pub function: u64,
    /// The address of its arguments.
    pub data: u64,
    /// It is final: its children run at once.
    pub last: bool,
    /// Its arguments own something that only its function gives up: it runs even if it is cancelled.
    pub owns: bool,
    /// Where it finds what it inherits of the task that made it.
    pub inherited: u64,
}

/// Where a thread is among tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The current task; `None` for one that runs at once, or an implicit one, that has had no children.
    pub(crate) task: Option<TaskId>,
    pub(crate) group: Option<GroupId>,
    pub(crate) ledger: LedgerId,
}

impl Scope {
    /// In an implicit task.
    pub const OUTSIDE: Self = Self { task: None, group: None, ledger: OWN };

    /// In a task that runs at once within this one.
    #[must_use]
    pub fn inside(self) -> Self {
        Self { task: None, ..self }
    }

    /// True if there may be children.
    #[must_use]
    pub fn has_task(self) -> bool {
        self.task.is_some()
    }

    /// True inside a group.
    #[must_use]
    pub fn has_group(self) -> bool {
        self.group.is_some()
    }
}

/// A dependence of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dependence {
    /// The address that it is about; [`ALL`](Self::ALL) for all memory.
    pub address: usize,
    /// It is `out` or `inout`: the task cannot run beside others with the address.
    pub changes: bool,
}

impl Dependence {
    /// The address that stands for all memory (`omp_all_memory`): a task that depends on it depends on what any address is about.
    pub const ALL: usize = 0;
}

/// True if tasks with these dependences must run one after the other.
#[must_use]
pub fn conflict(one: &[Dependence], other: &[Dependence]) -> bool {
    let same = |a: &Dependence, b: &Dependence| {
        a.address == b.address || a.address == Dependence::ALL || b.address == Dependence::ALL
    };
    one.iter().any(|a| other.iter().any(|b| same(a, b) && (a.changes || b.changes)))
}

/// What a task with a `detach` clause is not finished without. Events are known by names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// The task has none, or it is fulfilled.
    None,
    Open(u64),
    /// The body has ended before the event was fulfilled, or the task with `all` that it has made.
    Awaited {
        name: u64,
        all: bool,
    },
}

/// For what the thread of a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Awaited {
    Children,
    Siblings,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Record<W> {
    /// `None` for an implicit task, one that runs at once, and one of another node.
    pub parent: Option<TaskId>,
    pub group: Option<GroupId>,
    pub ledger: LedgerId,
    pub work: Work,
    /// It came from another node, with its ledger.
    pub root: bool,
    /// This node runs it, where it has this name.
    pub away: Option<(NodeId, AwayId)>,
    pub event: Event,
    /// It was discarded.
    pub cancelled: bool,
    /// Its body has ended.
    pub finished: bool,
    /// Children whose bodies have not ended, and those of them that are in the queue.
    pub children: u32,
    pub queued: u32,
    /// Those of them that have dependences.
    pub dependent: Vec<TaskId>,
    pub dependences: Vec<Dependence>,
    /// The number of tasks that must end before it, and the tasks that follow it.
    pub blockers: u32,
    pub followers: Vec<TaskId>,
    pub waiter: Option<(W, Awaited)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Group<W> {
    pub outer: Option<GroupId>,
    /// Tasks that are not finished with all their descendants.
    pub unfinished: u32,
    pub waiter: Option<W>,
    /// Tasks that have not begun do not run.
    pub cancelled: bool,
}

/// Counts the tasks that were made on this node and are not finished: those of this node's own threads with their
/// descendants here, or those of one task of another node, with itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ledger {
    pub unfinished: u32,
    /// Who waits for the end: a node, with its name for the task.
    pub origin: Option<(NodeId, AwayId)>,
    /// The group of the task that came from another node is cancelled.
    pub cancelled: bool,
}
