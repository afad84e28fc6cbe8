use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU8, Ordering};

/// The changed bytes and their new values, by the definition.
fn reference(page: &PageBytes, twin: &PageBytes) -> Vec<(usize, u8)> {
    (0..PAGE_SIZE).filter(|&at| page[at] != twin[at]).map(|at| (at, page[at])).collect()
}

fn encode_by(kernel: &Kernel, page: &PageBytes, twin: &PageBytes) -> Vec<u8> {
    let mut out = vec![0xee; 3];
    let mut snapshot = [0; PAGE_SIZE];
    // SAFETY: all are whole pages, and `available` returned the kernel.
    let count = unsafe { encode_with(kernel, page.as_ptr(), twin.as_ptr(), snapshot.as_mut_ptr(), &mut out) };
    assert_eq!(out[..3], [0xee; 3], "{}: what was there stays", kernel.name);
    assert_eq!(count, reference(page, twin).len(), "{}", kernel.name);
    out.split_off(3)
}

/// Twins with the kinds of writes that programs do: scattered bytes, runs, and strides.
fn twin_and_page() -> impl Strategy<Value = (Box<PageBytes>, Box<PageBytes>)> {
    let bytes = vec((0..PAGE_SIZE, any::<u8>()), 0..300);
    let runs = vec((0..PAGE_SIZE, 0..600usize, any::<u8>()), 0..6);
    let stride = (1..64usize, 0..8usize, any::<u8>());
    (any::<[u8; 16]>(), bytes, runs, prop::option::of(stride)).prop_map(|(seed, bytes, runs, stride)| {
        let twin: Box<PageBytes> =
            Box::new(std::array::from_fn(|at| seed[at % 16].wrapping_mul(at.to_le_bytes()[0])));
        let mut page = twin.clone();
        for (at, value) in bytes {
            page[at] = value;
        }
        for (at, length, value) in runs {
            page[at..(at + length).min(PAGE_SIZE)].fill(value);
        }
        if let Some((step, width, add)) = stride {
            for at in (0..PAGE_SIZE).filter(|at| at % step < width) {
                page[at] = page[at].wrapping_add(add);
            }
        }
        (twin, page)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_rest_of_a_diff_has_no_byte_of_the_later_one((twin, page) in twin_and_page(), (first, last) in twin_and_page()) {
        let changes = |page: &PageBytes, twin: &PageBytes| {
            let encoded = encode_by(&portable::KERNEL, page, twin);
            (!encoded.is_empty()).then(|| (encoded, reference(page, twin)))
        };
        let (Some((diff, mut wanted)), Some((later, removed))) = (changes(&page, &twin), changes(&last, &first)) else {
            return Ok(());
        };
        wanted.retain(|(at, _)| removed.binary_search_by_key(at, |&(at, _)| at).is_err());
        let mut rest = vec![0xee; 3];
        prop_assert_eq!(encode_rest(&diff, &later, &mut rest), Ok(wanted.len()));
        let rest = rest.split_off(3);
        prop_assert_eq!(rest.is_empty(), wanted.is_empty());
        if !wanted.is_empty() {
            let mut target = *twin;
            apply(&rest, (&mut target).into()).unwrap();
            let mut expected = *twin;
            wanted.iter().for_each(|&(at, value)| expected[at] = value);
            prop_assert_eq!(&target[..], &expected[..]);
        }
        prop_assert!(encode_rest(&diff, &later[1..], &mut vec![]).is_err());
    }

    #[test]
    fn every_kernel_finds_and_applies_the_changed_bytes((twin, page) in twin_and_page(), other in any::<u8>()) {
        let changes = reference(&page, &twin);
        let expected = encode_by(&portable::KERNEL, &page, &twin);
        for kernel in choice::available() {
            let encoded = encode_by(kernel, &page, &twin);
            prop_assert_eq!(&encoded, &expected, "{}", kernel.name);
            prop_assert!(encoded.len() <= MAX_DIFF_BYTES);
            if changes.is_empty() {
                prop_assert!(encoded.is_empty());
                continue;
            }
            let diff = Diff::parse(&encoded).unwrap();
            prop_assert_eq!(diff.changed_bytes(), changes.len());
            let mut target = [other; PAGE_SIZE];
            // SAFETY: a whole page, and a kernel that runs here.
            unsafe { diff.apply_with(kernel, target.as_mut_ptr()) };
            let mut wanted = [other; PAGE_SIZE];
            for &(at, value) in &changes {
                wanted[at] = value;
            }
            prop_assert_eq!(&target[..], &wanted[..], "{}", kernel.name);
        }
    }

    #[test]
    fn every_kernel_merges_only_what_is_new((twin, incoming) in twin_and_page(), (_, local) in twin_and_page()) {
        for kernel in choice::available() {
            let (mut merged, mut new_twin) = (local.clone(), twin.clone());
            // SAFETY: whole pages, and a kernel that runs here.
            let count = unsafe { merge_with(kernel, merged.as_mut_ptr(), &mut new_twin, incoming.as_ptr()) };
            prop_assert_eq!(count, reference(&incoming, &twin).len());
            prop_assert_eq!(&new_twin[..], &incoming[..]);
            for at in 0..PAGE_SIZE {
                let wanted = if incoming[at] == twin[at] { local[at] } else { incoming[at] };
                prop_assert_eq!(merged[at], wanted, "{} at {}", kernel.name, at);
            }
        }
    }

    #[test]
    fn every_kernel_sees_a_single_different_byte((page, _) in twin_and_page(), at in 0..PAGE_SIZE, bit in 0..8u8) {
        let mut other = page.clone();
        for kernel in choice::available() {
            // SAFETY: whole pages, and a kernel that runs here.
            prop_assert!(unsafe { (kernel.same)(page.as_ptr(), other.as_ptr()) }, "{}", kernel.name);
            other[at] ^= 1 << bit;
            // SAFETY: as above.
            prop_assert!(!unsafe { (kernel.same)(page.as_ptr(), other.as_ptr()) }, "{}", kernel.name);
            other[at] ^= 1 << bit;
        }
    }

    #[test]
    fn untrusted_bytes_are_refused_or_harmless(bytes in vec(any::<u8>(), 0..200), sparse in any::<[u8; 4]>()) {
        let mut bytes = bytes;
        // Random bitmaps name more bytes than follow: thin them out so that some inputs get through.
        for (index, byte) in bytes.iter_mut().take(HEADER_BYTES).enumerate() {
            *byte &= if index % 8 == 0 { sparse[index / 8] & sparse[index / 8 + 2] } else { 0 };
        }
        if let Ok((diff, rest)) = Diff::split_from(&bytes) {
            prop_assert!(diff.changed_bytes() + rest.len() <= bytes.len());
            for kernel in choice::available() {
                // The buffer is exactly one page long, so memory checkers detect a stray write.
                let mut page = Box::new([0; PAGE_SIZE]);
                // SAFETY: a whole page, and a kernel that runs here.
                unsafe { diff.apply_with(kernel, page.as_mut_ptr()) };
            }
        }
    }
}

#[test]
fn diffs_follow_one_another_and_cuts_are_seen() {
    let twin = [0; PAGE_SIZE];
    let mut page = twin;
    page[64..128].fill(1);
    page[200] = 2;
    let mut message = Vec::new();
    assert_eq!(encode((&page).into(), &twin, &mut message), 65);
    assert_eq!(encode((&twin).into(), &twin, &mut message), 0);
    let one = message.len();
    assert_eq!(one, HEADER_BYTES + 8 + 65);
    message.extend_from_within(..);
    let (first, rest) = Diff::split_from(&message).unwrap();
    assert_eq!((first.changed_bytes(), rest.len()), (65, one));
    assert_eq!(Diff::parse(&message).unwrap_err(), Malformed::Trailing(one));
    for end in 0..one {
        assert!(matches!(Diff::parse(&message[..end]), Err(Malformed::Truncated { have, need })
            if have == end && need > end && need <= one));
    }
}

#[test]
fn contradictions_are_refused() {
    let diff = |changed: u64, full: u64, mask: Option<u64>| {
        let mut bytes = [changed.to_le_bytes(), full.to_le_bytes()].concat();
        bytes.extend(mask.into_iter().flat_map(u64::to_le_bytes));
        bytes.extend([7; 64]);
        Diff::split_from(&bytes).map(|(diff, _)| diff.changed_bytes())
    };
    assert_eq!(diff(1, 1, None), Ok(64));
    assert_eq!(diff(1, 0, Some(5)), Ok(2));
    assert_eq!(diff(0, 0, None), Err(Malformed::Contradiction), "names no block");
    assert_eq!(diff(1, 2, None), Err(Malformed::Contradiction), "full but not changed");
    assert_eq!(diff(1, 0, Some(0)), Err(Malformed::Contradiction), "changed but no byte");
    assert_eq!(diff(1, 0, Some(u64::MAX)), Err(Malformed::Contradiction), "all bytes but not full");
}

#[test]
fn a_refreshed_twin_holds_what_was_sent() {
    let mut twin = [0; PAGE_SIZE];
    let mut page = twin;
    page[0] = 1;
    page[4095] = 2;
    let mut out = Vec::new();
    assert_eq!(encode_and_refresh((&page).into(), &mut twin, &mut out), 2);
    assert_eq!(twin, page);
    // A byte that goes back to its first value is news to the node that got the first diff.
    page[0] = 0;
    out.clear();
    assert_eq!(encode_and_refresh((&page).into(), &mut twin, &mut out), 1);
    let mut home = [9; PAGE_SIZE];
    apply(&out, (&mut home).into()).unwrap();
    assert_eq!((home[0], home[1]), (0, 9));
    page[100] = 7;
    assert!(refresh((&page).into(), &mut twin) && twin == page);
    assert!(!refresh((&page).into(), &mut twin));
}

/// A thread owns the odd bytes of a page and checks that they stay what it wrote, while each kernel keeps writing
/// the even ones: a store that covered a neighbour would undo a write.
#[test]
fn neighbours_written_by_other_threads_survive() {
    const ROUNDS: u8 = 250;
    const REPEATS: usize = 8;
    let even: PageBytes = std::array::from_fn(|at| u8::from(at % 2 == 0));
    for kernel in choice::available() {
        let encoded = encode_by(kernel, &even, &[0; PAGE_SIZE]);
        let diff = Diff::parse(&encoded).unwrap();
        let page: Box<[AtomicU8]> = (0..PAGE_SIZE).map(|_| AtomicU8::new(0)).collect();
        let odd = || page.iter().skip(1).step_by(2);
        let target = page.as_ptr() as usize;
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                for value in (0..ROUNDS).cycle().take(usize::from(ROUNDS) * REPEATS) {
                    odd().for_each(|byte| byte.store(value, Ordering::Relaxed));
                    assert!(odd().all(|byte| byte.load(Ordering::Relaxed) == value));
                }
            });
            while !writer.is_finished() {
                let mut twin = [0; PAGE_SIZE];
                // SAFETY: atomics may be written through their address; nobody else writes the even bytes.
                unsafe {
                    diff.apply_with(kernel, target as *mut u8);
                    merge_with(kernel, target as *mut u8, &mut twin, even.as_ptr());
                }
            }
            writer.join().unwrap_or_else(|_| panic!("{} wrote a neighbour", kernel.name));
        });
    }
}
