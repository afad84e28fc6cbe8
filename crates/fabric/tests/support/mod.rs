//! Fabrics to test, and service threads for them.

use gondwana_fabric::{DEFAULT_RING_BYTES, Fabric, Security, ShmFabric, ShmSegment, TcpConfig, TcpFabric};
use gondwana_topology::{Id, NodeId};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The fabrics of all nodes of a run.
pub(crate) type Fabrics = Vec<Arc<dyn Fabric>>;

/// Makes the fabrics for a number of nodes.
pub(crate) type Make = fn(usize) -> Fabrics;

pub(crate) fn shm(nodes: usize) -> Fabrics {
    let segment = ShmSegment::create(nodes, DEFAULT_RING_BYTES).unwrap();
    let attach = |node| Arc::new(ShmFabric::attach(&segment, NodeId::from_index(node), nodes).unwrap()) as _;
    (0..nodes).map(attach).collect()
}

pub(crate) fn encrypted(nodes: usize) -> Fabrics {
    tcp(nodes, &Security::Encrypted([7; 32]))
}

pub(crate) fn plain(nodes: usize) -> Fabrics {
    tcp(nodes, &Security::Plain)
}

fn tcp(nodes: usize, security: &Security) -> Fabrics {
    let (listeners, configs) = meeting(nodes, security);
    std::thread::scope(|scope| {
        let connect =
            |(listener, config)| scope.spawn(move || TcpFabric::connect(listener, &config).unwrap());
        let threads: Vec<_> = listeners.into_iter().zip(configs).map(connect).collect();
        threads.into_iter().map(|thread| Arc::new(thread.join().unwrap()) as _).collect()
    })
}

/// Listeners and configurations for a run of so many nodes.
pub(crate) fn meeting(nodes: usize, security: &Security) -> (Vec<TcpListener>, Vec<TcpConfig>) {
    let listeners: Vec<_> = (0..nodes).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let peers: Vec<_> = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
    let config = |node| TcpConfig {
        node: NodeId::from_index(node),
        peers: peers.clone(),
        run: [1; 16],
        security: security.clone(),
        timeout: Duration::from_secs(20),
        silence: Duration::from_secs(20),
    };
    (listeners, (0..nodes).map(config).collect())
}

/// The 32-bit number at an offset.
pub(crate) fn word_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

/// The service thread of a node: polls, and sleeps when there is nothing.
pub(crate) struct Service {
    fabric: Arc<dyn Fabric>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    received: Mutex<usize>,
    more: Condvar,
}

impl Service {
    pub(crate) fn start<F>(fabric: &Arc<dyn Fabric>, mut deliver: F) -> Self
    where
        F: FnMut(&dyn Fabric, NodeId, &[u8], &[u8]) + Send + 'static,
    {
        let (fabric, shared) = (Arc::clone(fabric), Arc::new(Shared::default()));
        let thread = std::thread::spawn({
            let (fabric, shared) = (Arc::clone(&fabric), Arc::clone(&shared));
            move || {
                while !shared.stop.load(Ordering::SeqCst) {
                    let taken = fabric.poll(&mut |from, head, bulk| deliver(&*fabric, from, head, bulk));
                    if taken == 0 {
                        fabric.wait(None);
                    } else {
                        *shared.received.lock().unwrap() += taken;
                        shared.more.notify_all();
                    }
                }
            }
        });
        Self { fabric, shared, thread: Some(thread) }
    }

    /// Waits until this thread has received so many messages, with a timeout.
    pub(crate) fn wait_for(&self, count: usize) {
        let received = self.shared.received.lock().unwrap();
        let limit = Duration::from_secs(60);
        let (received, _) =
            self.shared.more.wait_timeout_while(received, limit, |received| *received < count).unwrap();
        assert_eq!(*received, count, "messages received");
    }

    /// As `wait_for`, then ends the thread and passes its panic on.
    pub(crate) fn finish_after(self, count: usize) {
        self.wait_for(count);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.fabric.interrupt();
        let outcome = self.thread.take().expect("the thread ends once").join();
        if !std::thread::panicking() {
            outcome.expect("the service thread panicked");
        }
    }
}
