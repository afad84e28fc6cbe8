use super::*;
use std::sync::atomic::{AtomicU8, Ordering};

const LEN: usize = 1000;

/// Miri runs some thousand times slower.
const ROUNDS: usize = if cfg!(miri) { 3 } else { 2000 };

#[test]
fn copies_are_exact_at_every_offset_and_length() {
    let source: [u8; 70] = std::array::from_fn(|at| u8::try_from(at).unwrap() + 1);
    for start in 0..9 {
        for end in start..source.len() {
            let part = RacingBytes::from(&source).part(start..end);
            let mut copy = [0; 72];
            RacingBytesMut::from(&mut copy[1..=part.len()]).copy_from(part);
            assert_eq!(copy[1..=part.len()], source[start..end]);
            assert!(
                copy[0] == 0 && copy[part.len() + 1..].iter().all(|&byte| byte == 0),
                "nothing else is written"
            );
            let mut appended = vec![7];
            part.append_to(&mut appended);
            assert_eq!((appended[0], &appended[1..]), (7, &source[start..end]));
            RacingBytesMut::from(&mut appended[1..]).clear();
            assert!(appended[0] == 7 && appended[1..].iter().all(|&byte| byte == 0));
        }
    }
}

#[test]
fn numbers_are_little_endian_and_cover_their_bytes_only() {
    let mut bytes = [0xee_u8; 12];
    for offset in 0..4 {
        let at = |bytes: &mut [u8; 12]| bytes[offset..].as_mut_ptr();
        // SAFETY: eight bytes from the offset on are private and there.
        unsafe {
            access::store_u64(at(&mut bytes), 0x0807_0605_0403_0201);
            assert_eq!(access::load_u64(at(&mut bytes)), 0x0807_0605_0403_0201);
            access::store_u8(at(&mut bytes), 0xa1);
            access::store_u16(at(&mut bytes).add(1), 0xb2b1);
            access::store_u32(at(&mut bytes).add(3), 0xc4c3_c2c1);
        }
        assert_eq!(bytes[offset..offset + 8], [0xa1, 0xb1, 0xb2, 0xc1, 0xc2, 0xc3, 0xc4, 8]);
        assert!(bytes[..offset].iter().chain(&bytes[offset + 8..]).all(|&byte| byte == 0xee));
        bytes = [0xee; 12];
    }
}

#[test]
#[should_panic(expected = "4..9 of 8 bytes")]
fn parts_are_inside() {
    let _ = RacingBytes::from(&[0; 8]).part(4..9);
}

/// Threads write a value to all bytes again and again, one after the other, while this one copies in all ways: each byte
/// that it gets is one that somebody wrote, and bytes of which this thread is the only writer keep what it wrote. Miri
/// reports a reference or a plain access to the bytes as the data race that it would be.
#[test]
fn copies_are_made_of_bytes_that_writers_wrote() {
    let bytes: Box<[AtomicU8]> = (0..LEN).map(|_| AtomicU8::new(1)).collect();
    let start = bytes.as_ptr().cast_mut().cast::<u8>();
    // SAFETY: the bytes outlive the threads, and may be written through their address because they are atomic.
    let racing = unsafe { RacingBytesMut::new(start, LEN) };
    // SAFETY: as above. Only this thread writes the first half.
    let own = unsafe { RacingBytesMut::new(start, LEN / 2) };
    std::thread::scope(|scope| {
        let writers: Vec<_> = [2, 3]
            .into_iter()
            .map(|value| {
                let others = &bytes[LEN / 2..];
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        others.iter().for_each(|byte| byte.store(value, Ordering::Relaxed));
                    }
                })
            })
            .collect();
        let mut rounds = 0_usize;
        while rounds < 3 || writers.iter().any(|writer| !writer.is_finished()) {
            let value = u8::try_from(rounds % 200).unwrap() + 10;
            rounds += 1;
            own.copy_from(RacingBytes::from(&vec![value; LEN / 2]));
            let (mut copy, mut appended) = ([0; LEN], vec![]);
            racing.readable().copy_to(&mut copy);
            racing.readable().append_to(&mut appended);
            // SAFETY: inside the bytes.
            let word = unsafe { access::load_u64(start.add(LEN - 8)) };
            for copy in [&copy[..], &appended] {
                assert!(copy[..LEN / 2].iter().all(|&byte| byte == value));
                assert!(copy[LEN / 2..].iter().chain(&word.to_le_bytes()).all(|byte| (1..=3).contains(byte)));
            }
        }
    });
}
