//! What functions for C cost: `cargo run --release -p gondwana-capi --example calls`.

use gondwana_api::{cg_memloc, gw_alloc, gw_free, gw_rset_allowed, gw_rset_free, gw_thread_create};
use gondwana_host::sys::{self, Policy};
use gondwana_host::{AnonymousMemory, discover_nodes};
use gondwana_page::PAGE_SIZE;
use gondwana_rset::RSet;
use libc::c_void;
use std::ptr::{null, null_mut};
use std::time::Instant;

const BYTES: usize = 1 << 30;
const STRIPED: i32 = 4;
/// Everything is measured so often, by turns.
const TIMES: usize = 7;

/// Seconds that some work takes.
fn seconds<R>(work: impl FnOnce() -> R) -> (f64, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64(), result)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// 1 GiB in small pages that the kernel interleaves, touched page by page.
fn by_the_kernel() -> AnonymousMemory {
    let nodes = *RSet::allowed(&discover_nodes().expect("a machine")).memory();
    let region = AnonymousMemory::new(BYTES).expect("memory");
    sys::without_huge_pages(&region.addresses()).expect("small pages");
    sys::set_policy_of(&region.addresses(), &Policy::Interleave(nodes)).expect("a policy");
    (0..region.pages()).for_each(|page| region.touch(page));
    region
}

unsafe extern "C-unwind" fn nothing(argument: *mut c_void) -> *mut c_void {
    argument
}

fn main() {
    const SMALL_PAGES: u32 = 1 << 4;
    let set = gw_rset_allowed();
    let (mut kernel, mut striped, mut memloc, mut threads) = (vec![], vec![], vec![], vec![]);
    let mut nodes = vec![0; BYTES / PAGE_SIZE];
    for _ in 0..TIMES {
        kernel.push(seconds(by_the_kernel).0);
        // SAFETY: the set and the block are in use until they are freed, and the array has room for all pages.
        unsafe {
            let (time, block) = seconds(|| gw_alloc(BYTES, set, STRIPED, 1, SMALL_PAGES));
            assert!(!block.is_null());
            striped.push(time);
            let (time, result) = seconds(|| cg_memloc(block.cast(), BYTES, nodes.as_mut_ptr()));
            assert_eq!((result, nodes.contains(&-1)), (0, false));
            memloc.push(nodes.len() as f64 / time / 1e6);
            assert_eq!(gw_free(block), 0);
            let (time, ()) = seconds(|| {
                let mut thread = 0;
                assert_eq!(gw_thread_create(&mut thread, null(), set, Some(nothing), null_mut()), 0);
                libc::pthread_join(thread, null_mut());
            });
            threads.push(time * 1e6);
        }
    }
    // SAFETY: nobody uses the set any more.
    unsafe { gw_rset_free(set) };
    let (kernel, striped) = (median(kernel), median(striped));
    println!("interleave 1 GiB by the kernel  {:8.0} ms", kernel * 1e3);
    println!("gw_alloc striped 1 GiB          {:8.0} ms, {:.2} x", striped * 1e3, striped / kernel);
    println!("cg_memloc 1 GiB                 {:8.1} million pages/s", median(memloc));
    println!("gw_thread_create and join       {:8.1} us", median(threads));
}
