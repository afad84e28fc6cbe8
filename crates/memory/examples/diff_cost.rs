//! Prints what encoding, applying and merging the diff of one page costs, in ns, for several kinds of writes.
//!
//! Run it in release mode: `cargo run --release -p gondwana-memory --example diff_cost`.

use gondwana_memory::diff::{Diff, encode, merge};
use gondwana_memory::{PAGE_SIZE, PageBytes};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 20_000;

/// Whether a kind of write changes the byte at an offset.
type Written = fn(usize) -> bool;

/// The least of several means, because other work on the computer can only add to it.
fn ns_per_call(mut call: impl FnMut()) -> f64 {
    (0..5)
        .map(|_| {
            let start = Instant::now();
            (0..ROUNDS).for_each(|_| call());
            start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let twin: Box<PageBytes> = Box::new(std::array::from_fn(|at| (at / 7).to_le_bytes()[0]));
    let writes: [(&str, Written); 7] = [
        ("clean", |_| false),
        ("64 bytes", |at| (1024..1088).contains(&at)),
        ("16 scattered words", |at| at % 256 < 4),
        ("alternate words", |at| at % 8 < 4),
        ("6 bytes of each double", |at| at % 8 < 6),
        ("alternate bytes", |at| at % 2 == 0),
        ("all bytes", |_| true),
    ];
    println!("{:24} {:>6} {:>9} {:>9} {:>9}", "written", "bytes", "encode", "apply", "merge");
    for (name, written) in writes {
        let mut page = twin.clone();
        (0..PAGE_SIZE).filter(|&at| written(at)).for_each(|at| page[at] ^= 0xff);
        let mut out = Vec::new();
        let encoding = ns_per_call(|| {
            out.clear();
            black_box(encode(black_box((&*page).into()), &twin, &mut out));
        });
        let mut target = twin.clone();
        let applying = ns_per_call(|| {
            if let Ok(diff) = Diff::parse(black_box(&out)) {
                diff.apply((&mut *target).into());
            }
        });
        let mut patched = twin.clone();
        let (mut one, mut other) = (&page, &twin);
        let merging = ns_per_call(|| {
            // The twin takes turns, so that each call finds the same bytes to change.
            black_box(merge((&mut *target).into(), &mut patched, (&**one).into()));
            std::mem::swap(&mut one, &mut other);
        });
        println!("{name:24} {:>6} {encoding:>9.0} {applying:>9.0} {merging:>9.0}", out.len());
    }
}
