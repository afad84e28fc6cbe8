//! A program of Rust that knows nothing of nodes: tasks, channels, locks, timers and sockets by tokio, on a pool of threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{Barrier, Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::task::{self, JoinSet};
use tokio::time;

const TASKS: u64 = 12;
const ROUNDS: u64 = 30;

async fn channels() {
    let (send, mut receive) = mpsc::channel(4);
    for number in 0..TASKS {
        let send = send.clone();
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                send.send(number * round).await.expect("main receives");
                task::yield_now().await;
            }
        });
    }
    drop(send);
    let mut sum = 0;
    while let Some(value) = receive.recv().await {
        sum += value;
    }
    let (ask, asked) = oneshot::channel();
    let answer = tokio::spawn(async move { asked.await.map(|value: u64| value + 1) });
    ask.send(sum).expect("the task waits");
    println!("channels {sum} {:?}", answer.await.expect("no panic"));

    let (tell_all, _) = broadcast::channel(64);
    let (set, seen) = watch::channel(0);
    let mut listeners = JoinSet::new();
    for _ in 0..TASKS {
        let (mut all, mut last) = (tell_all.subscribe(), seen.clone());
        listeners.spawn(async move {
            let mut heard = 0;
            while let Ok(value) = all.recv().await {
                heard += value;
            }
            heard + *last.wait_for(|value| *value == ROUNDS).await.expect("it comes")
        });
    }
    for round in 1..=ROUNDS {
        tell_all.send(round).expect("all listen");
        set.send(round).expect("all listen");
    }
    drop(tell_all);
    println!("listeners {}", listeners.join_all().await.iter().sum::<u64>());
}

async fn locks() {
    let count = Arc::new(Mutex::new(0));
    let (few, inside, most) =
        (Arc::new(Semaphore::new(3)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let table = Arc::new(RwLock::new(vec![0; 4]));
    let barrier = Arc::new(Barrier::new(usize::try_from(TASKS).expect("few")));
    let mut team = JoinSet::new();
    for _ in 0..TASKS {
        let (count, few, inside, most) = (count.clone(), few.clone(), inside.clone(), most.clone());
        let (table, barrier) = (table.clone(), barrier.clone());
        team.spawn(async move {
            for round in 0..ROUNDS {
                let mut held = count.lock().await;
                let before = *held;
                task::yield_now().await;
                *held = before + 1;
                drop(held);
                let permit = few.acquire().await.expect("it is never closed");
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(permit);
                if round % 10 == 0 {
                    table.write().await.iter_mut().for_each(|part| *part += 1);
                    barrier.wait().await;
                }
                let seen = table.read().await;
                assert!(seen.iter().all(|part| *part == seen[0]), "half written: {seen:?}");
            }
        });
    }
    team.join_all().await;
    assert!(most.load(Ordering::SeqCst) <= 3, "a semaphore let too many in");
    println!("locks {} {:?}", *count.lock().await, table.read().await);

    let (ping, pong) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let other = {
        let (ping, pong) = (ping.clone(), pong.clone());
        tokio::spawn(async move {
            for _ in 0..ROUNDS {
                ping.notified().await;
                pong.notify_one();
            }
        })
    };
    for _ in 0..ROUNDS {
        ping.notify_one();
        pong.notified().await;
    }
    println!("notices {}", other.await.is_ok());
}

async fn timers() {
    let mut sleepers = JoinSet::new();
    for number in 0..TASKS {
        sleepers.spawn(async move {
            time::sleep(Duration::from_millis(number)).await;
            number
        });
    }
    let sum: u64 = sleepers.join_all().await.iter().sum();
    let late = time::timeout(Duration::from_millis(5), std::future::pending::<()>()).await.is_err();
    let mut ticks = time::interval(Duration::from_millis(1));
    for _ in 0..10 {
        ticks.tick().await;
    }
    println!("timers {sum} {late}");
}

/// Threads that may block, a task that panics, and one that is aborted.
async fn ends() {
    let blocking: Vec<_> = (0..TASKS).map(|number| task::spawn_blocking(move || number * number)).collect();
    let mut sum = 0;
    for thread in blocking {
        sum += thread.await.expect("no panic");
    }
    let failed = tokio::spawn(async { std::panic::resume_unwind(Box::new("by design")) }).await;
    let endless = tokio::spawn(std::future::pending::<()>());
    endless.abort();
    let failed = failed.expect_err("it panics").is_panic();
    println!("ends {sum} {failed} {}", endless.await.expect_err("it has no end").is_cancelled());
}

/// A server that sends back what clients send, each in tasks of its own.
async fn sockets() -> std::io::Result<()> {
    let server = TcpListener::bind("127.0.0.1:0").await?;
    let address = server.local_addr()?;
    let serving = tokio::spawn(async move {
        for _ in 0..TASKS {
            let (mut stream, _) = server.accept().await?;
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
        std::io::Result::Ok(())
    });
    let mut clients = JoinSet::new();
    for number in 0..TASKS {
        clients.spawn(async move {
            let mut stream = TcpStream::connect(address).await?;
            let sent: Vec<u8> =
                (0..10_000_u32).map(|index| u8::try_from((index + 1) % 251).expect("small")).collect();
            let (mut from, mut to) = stream.split();
            to.write_all(&sent).await?;
            to.shutdown().await?;
            let mut received = vec![];
            from.read_to_end(&mut received).await?;
            std::io::Result::Ok(if received == sent { number } else { u64::MAX })
        });
    }
    let mut sum = 0;
    while let Some(client) = clients.join_next().await {
        sum += client.expect("no panic")?;
    }
    serving.await.expect("no panic")?;
    println!("sockets {sum}");
    Ok(())
}

fn main() {
    let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        channels().await;
        locks().await;
        timers().await;
        ends().await;
        sockets().await.expect("sockets of this computer");
    });
}
