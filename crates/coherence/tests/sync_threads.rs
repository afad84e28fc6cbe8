//! Mutexes of two nodes with real threads: the fast path races with the slow path, with flushes and messages.

use gondwana_coherence::sync::{
    Fast, Kind, LockEnv, LockGrant, LockMessage, LockTable, Locks, Object, Thread, TryOutcome,
};
use gondwana_coherence::{Outcome, Waiter};
use gondwana_page::to_usize;
use gondwana_topology::NodeId;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const NODES: u16 = 2;
const THREADS: usize = 2;
const ROUNDS: usize = 3000;
const MUTEXES: u64 = 3;
/// So many rounds have one trylock; the others lock.
const TRY_EVERY: usize = 7;

/// What a node's service thread is told.
enum Command {
    Message(NodeId, LockMessage),
    Flushed(Object),
    /// The time of tokens that stay has begun to run.
    Kept,
    Stop,
}

struct Node {
    me: NodeId,
    table: Arc<LockTable>,
    locks: Mutex<Locks>,
    services: Vec<Sender<Command>>,
    threads: Vec<Sender<LockGrant>>,
    began: Instant,
}

/// A node seen from within its lock.
struct Inside<'a>(&'a Node);

impl Inside<'_> {
    fn tell(&self, node: NodeId, command: Command) {
        self.0.services[node.index()].send(command).unwrap();
    }
}

impl Node {
    /// Runs `act` under the node's lock, as a thread of the program or the service thread.
    fn with_locks<R>(&self, act: impl FnOnce(&mut Locks, &mut Inside) -> R) -> R {
        let mut locks = self.locks.lock().unwrap();
        let result = act(&mut locks, &mut Inside(self));
        if locks.take_newly_kept() {
            Inside(self).tell(self.me, Command::Kept);
        }
        result
    }
}

impl LockEnv for Inside<'_> {
    fn send(&mut self, to: NodeId, message: &LockMessage) {
        self.tell(to, Command::Message(self.0.me, *message));
    }

    fn pass(&mut self, object: Object, _to: Option<NodeId>) -> Outcome {
        self.tell(self.0.me, Command::Flushed(object));
        Outcome::Wait
    }

    fn arrived(&mut self, _object: Object, _from: NodeId) {}

    fn now(&self) -> Duration {
        self.0.began.elapsed()
    }

    fn is_active(&self) -> bool {
        true
    }

    fn resume(&mut self, waiter: Waiter, grant: LockGrant) {
        self.0.threads[to_usize(waiter.0)].send(grant).unwrap();
    }
}

fn serve(node: &Node, commands: &Receiver<Command>) {
    let mut due: Option<Duration> = None;
    loop {
        let command = match due {
            Some(due) => commands.recv_timeout(due.saturating_sub(node.began.elapsed())),
            None => Ok(commands.recv().unwrap()),
        };
        due = node.with_locks(|locks, env| {
            match command {
                Ok(Command::Message(from, message)) => locks.message(from, message, env).unwrap(),
                Ok(Command::Flushed(object)) => locks.flushed(object, env),
                Ok(Command::Kept | Command::Stop) | Err(_) => {}
            }
            locks.let_go_due(env)
        });
        if let Ok(Command::Stop) = command {
            return;
        }
    }
}

fn lock(node: &Node, object: Object, index: usize, grants: &Receiver<LockGrant>) {
    let thread = Thread(index as u64 + 1);
    if node.table.entry(object).fast_lock(thread, || Kind::Normal) == Ok(Fast::Done) {
        return;
    }
    let outcome = node.with_locks(|locks, env| locks.lock(object, thread, Waiter(index as u64), env));
    if outcome == Outcome::Wait {
        assert_eq!(grants.recv(), Ok(LockGrant::Acquired));
    }
}

fn try_lock(node: &Node, object: Object, index: usize, grants: &Receiver<LockGrant>) -> bool {
    let thread = Thread(index as u64 + 1);
    match node.table.entry(object).fast_try_lock(thread, || Kind::Normal) {
        Ok(Fast::Done) => return true,
        Ok(Fast::Slow) => {}
        Err(_) => return false,
    }
    let outcome = node.with_locks(|locks, env| locks.try_lock(object, thread, Waiter(index as u64), env));
    match outcome {
        TryOutcome::Acquired => true,
        TryOutcome::Busy => false,
        TryOutcome::Wait => grants.recv() == Ok(LockGrant::Acquired),
    }
}

fn unlock(node: &Node, object: Object, index: usize) {
    let thread = Thread(index as u64 + 1);
    assert!(node.table.entry(object).is_held_by(thread));
    if node.table.entry(object).fast_unlock(thread, || Kind::ErrorCheck) == Ok(Fast::Slow) {
        node.with_locks(|locks, env| locks.unlock(object, env)).unwrap();
    }
}

#[test]
fn no_update_is_lost() {
    let (services, commands): (Vec<_>, Vec<_>) = (0..NODES).map(|_| channel()).unzip();
    let mut grants = Vec::new();
    let nodes: Vec<Node> = (0..NODES)
        .map(|node| {
            let (threads, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
            grants.push(receivers);
            let (me, table) = (NodeId(node), Arc::new(LockTable::new()));
            let manager =
                Arc::new(|object: Object| NodeId(u16::try_from(object.0 % u64::from(NODES)).unwrap()));
            let locks = Mutex::new(Locks::new(me, NODES, Arc::clone(&table), manager));
            Node { me, table, locks, services: services.clone(), threads, began: Instant::now() }
        })
        .collect();
    // Read and written in two steps: an update is lost if two threads are inside.
    let counts: Vec<AtomicU64> = (0..MUTEXES).map(|_| AtomicU64::new(0)).collect();
    let entered = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for (node, commands) in nodes.iter().zip(commands) {
            scope.spawn(move || serve(node, &commands));
        }
        let mut runs = Vec::new();
        for (node, grants) in nodes.iter().zip(grants) {
            for (index, grants) in grants.into_iter().enumerate() {
                let (counts, entered) = (&counts, &entered);
                runs.push(scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let which = (round * (index + 1) / 50) % counts.len();
                        let object = Object(which as u64 + 1);
                        if round % TRY_EVERY == 0 {
                            if !try_lock(node, object, index, &grants) {
                                continue;
                            }
                        } else {
                            lock(node, object, index, &grants);
                        }
                        let count = &counts[which];
                        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                        entered.fetch_add(1, Ordering::Relaxed);
                        unlock(node, object, index);
                    }
                }));
            }
        }
        let ends: Vec<_> = runs.into_iter().map(|run| run.join()).collect();
        // First of all, so that a failure does not leave the services running.
        services.iter().for_each(|service| service.send(Command::Stop).unwrap());
        ends.into_iter().for_each(|end| end.unwrap());
    });
    let total: u64 = counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    assert_eq!(total, entered.load(Ordering::Relaxed));
    let certain = (0..ROUNDS).filter(|round| round % TRY_EVERY != 0).count() * usize::from(NODES) * THREADS;
    assert!(total >= certain as u64, "every lock that waits succeeds");
    let moved: u64 = nodes.iter().map(|node| node.locks.lock().unwrap().counters().tokens_received).sum();
    assert!(moved > 0, "the nodes must have competed");
}
