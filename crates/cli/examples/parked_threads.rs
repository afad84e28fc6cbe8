//! A program of Rust that knows nothing of nodes: locks and maps by parking_lot and dashmap, channels and scopes of the standard library.
//! A waiting thread of parking_lot sleeps on a thread-local variable, by which another one wakes it.

use parking_lot::{Condvar, Mutex, RwLock};
use std::sync::mpsc;
use std::thread;

const THREADS: usize = 4;
const ROUNDS: u64 = 200;

struct Shared {
    count: Mutex<u64>,
    changed: Condvar,
    table: RwLock<[u32; 16]>,
}

fn main() {
    let shared = Shared { count: Mutex::new(0), changed: Condvar::new(), table: RwLock::new([0; 16]) };
    let map = dashmap::DashMap::new();
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (shared, map, send) = (&shared, &map, send.clone());
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    *shared.count.lock() += 1;
                    shared.changed.notify_all();
                    if round % 20 == 0 {
                        shared.table.write()[index] += 1;
                    }
                    *map.entry(round % 37).or_insert(0_u64) += index as u64;
                    let _ = shared.table.read()[0];
                }
                send.send(index).expect("main receives");
            });
        }
        let mut count = shared.count.lock();
        while *count < ROUNDS * THREADS as u64 {
            shared.changed.wait(&mut count);
        }
        println!("count {count}");
    });
    let mut indices: Vec<usize> = receive.into_iter().take(THREADS).collect();
    indices.sort_unstable();
    println!("ended {indices:?}");
    println!("table {:?}", &shared.table.read()[..THREADS]);
    println!("map {} {}", map.len(), map.iter().map(|entry| *entry.value()).sum::<u64>());
}
