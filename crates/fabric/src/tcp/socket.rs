//! A socket with the encryption of [`TcpFabric`](super::TcpFabric) and nothing else: the lower bound for figures between
//! computers. Both ends spin.

use super::frame::{Channel, LENGTH, MAX_FRAME, TAG};
use super::handshake::{FIRST_FRAME, Identity};
use super::queue::ByteQueue;
use super::shake::shake;
use crate::raw::RoundTrip;
use gondwana_topology::NodeId;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a request; any that a protocol sends is at least as long.
const REQUEST: usize = 32;

/// The most bytes that one frame carries.
const PIECE: usize = MAX_FRAME - TAG;

/// One end of a connection over the loopback device.
struct End {
    stream: TcpStream,
    channel: Channel,
    /// Numbers of the next frames.
    sends: u64,
    receives: u64,
    outgoing: ByteQueue,
    wire: ByteQueue,
    frame: Vec<u8>,
    incoming: ByteQueue,
}

impl End {
    fn new(stream: TcpStream, channel: Channel) -> Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            channel,
            sends: FIRST_FRAME,
            receives: FIRST_FRAME,
            outgoing: ByteQueue::default(),
            wire: ByteQueue::default(),
            frame: vec![0; LENGTH + MAX_FRAME],
            incoming: ByteQueue::default(),
        })
    }

    /// Sends a message, which fits into one frame.
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.outgoing.extend(message);
        self.channel.seal(self.sends, &mut self.outgoing, &mut self.wire);
        self.sends += 1;
        while !self.wire.is_empty() {
            let written = spin(|| (&self.stream).write(self.wire.bytes()))?;
            self.wire.consume(written);
        }
        Ok(())
    }

    /// Receives a message of so many bytes.
    fn receive(&mut self, length: usize) -> Result<&[u8]> {
        let expected = LENGTH + length + TAG;
        let mut got = 0;
        while got < expected {
            got += match spin(|| (&self.stream).read(&mut self.frame[got..expected]))? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                more => more,
            };
        }
        self.incoming.consume(self.incoming.len());
        let opened = self.channel.open(self.receives, &self.frame[LENGTH..expected], &mut self.incoming);
        opened.map_err(|damage| std::io::Error::new(ErrorKind::InvalidData, damage))?;
        self.receives += 1;
        Ok(self.incoming.bytes())
    }
}

/// Repeats what would have to wait.
fn spin(mut act: impl FnMut() -> Result<usize>) -> Result<usize> {
    loop {
        match act() {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                std::hint::spin_loop();
            }
            done => return done,
        }
    }
}

/// The two ends of a connection.
fn ends() -> Result<(End, End)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let caller = TcpStream::connect(listener.local_addr()?)?;
    let (called, _) = listener.accept()?;
    let secret = [7; 32];
    let identity = |node| Identity { node: NodeId(node), nodes: 2, run: [0; 16], secret: Some(&secret) };
    let (first, second) = shake(identity(1), identity(0)).expect("both know the secret");
    Ok((End::new(caller, first)?, End::new(called, second)?))
}

/// Times `rounds` round trips: a short request, and an answer of `bulk_bytes` bytes besides as much. `None` for no rounds.
///
/// # Errors
/// If sockets cannot be had.
pub fn round_trip(bulk_bytes: usize, rounds: usize) -> Result<Option<RoundTrip>> {
    let (mut asker, mut answerer) = ends()?;
    let length = REQUEST + bulk_bytes;
    let mut times = Vec::with_capacity(rounds);
    std::thread::scope(|scope| {
        // The end goes with the thread, so that an error at one end is one at the other.
        let answering = scope.spawn(move || {
            let answer = vec![0x5a; length];
            (0..rounds).try_for_each(|_| {
                answerer.receive(REQUEST)?;
                answerer.send(&answer)
            })
        });
        for _ in 0..rounds {
            let start = Instant::now();
            asker.send(&[0; REQUEST])?;
            asker.receive(length)?;
            times.push(start.elapsed());
        }
        answering.join().expect("it does not panic")
    })?;
    Ok(RoundTrip::of(times))
}

/// The time in which `bytes` bytes in the largest frames arrive and are copied to where they belong.
///
/// # Errors
/// If sockets cannot be had.
pub fn stream(bytes: usize) -> Result<Duration> {
    let (mut sender, mut receiver) = ends()?;
    let mut target = vec![0; bytes];
    std::thread::scope(|scope| {
        let sending = scope.spawn(move || {
            let source = vec![0x5a; PIECE];
            let mut pieces = (0..bytes).step_by(PIECE);
            pieces.try_for_each(|at| sender.send(&source[..PIECE.min(bytes - at)]))
        });
        let start = Instant::now();
        for piece in target.chunks_mut(PIECE) {
            let length = piece.len();
            piece.copy_from_slice(receiver.receive(length)?);
        }
        let took = start.elapsed();
        sending.join().expect("it does not panic")?;
        Ok(took)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives() {
        let (mut one, mut other) = ends().unwrap();
        for length in [1, REQUEST, PIECE] {
            let message: Vec<u8> = (0..=250).cycle().take(length).collect();
            std::thread::scope(|scope| {
                scope.spawn(|| one.send(&message).unwrap());
                assert_eq!(other.receive(length).unwrap(), message);
            });
        }
    }

    #[test]
    fn round_trips_and_streams_take_time() {
        let trip = round_trip(4096, 50).unwrap().unwrap();
        assert!(!trip.min.is_zero() && trip.min <= trip.median);
        assert_eq!(round_trip(0, 0).unwrap(), None);
        assert!(!stream(3 * PIECE + 1).unwrap().is_zero());
    }
}
