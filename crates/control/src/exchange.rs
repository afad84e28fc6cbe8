//! How nodes of one computer hand over the descriptors by which the others read their memory.
//!
//! Each node gives its descriptors to the launcher, once, and the launcher gives each node those of all others in one
//! message. They travel over a socket pair for each node, which has no name: nobody but its two ends can send or receive.

use gondwana_memory::Peer;
use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// How many descriptors a node hands over.
pub const EACH: usize = Peer::DESCRIPTORS;

/// What a node hands over: see [`Pages::offer`](gondwana_memory::Pages::handover).
pub type Offer = [OwnedFd; EACH];

/// What so many nodes have handed over fits in one message: the kernel takes 253 descriptors.
const AT_ONCE: usize = 253 / EACH;

/// How many descriptors are in one message at most.
const MOST: usize = AT_ONCE * EACH;

/// How long to wait before looking again whether the kernel takes more descriptors of this user.
pub const MOMENT: Duration = Duration::from_millis(1);

/// One end of the socket pair between the launcher and a node.
#[derive(Debug)]
pub struct Exchange(OwnedFd);

impl Exchange {
    /// Makes the two ends: the launcher's and the node's. Both are close-on-exec.
    ///
    /// # Errors
    /// Of the system.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(one), Self(other)))
    }

    /// Takes over an end, in a node [`Boot::exchange_fd`](crate::Boot::exchange_fd).
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// The node hands over its descriptors. A user may have only so many on their way at a time: waits until they fit in.
    ///
    /// # Errors
    /// Of the system; of the kind [`io::ErrorKind::WouldBlock`] if they do not fit in before `end`.
    pub fn offer(&self, mine: &[BorrowedFd<'_>; EACH], end: Instant) -> io::Result<()> {
        loop {
            match self.send(&[0], mine) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < end => {
                    // By system call: the C library's functions that sleep are the program's.
                    let _ = poll(&mut [], Timespec::try_from(MOMENT).ok().as_ref());
                }
                result => return result,
            }
        }
    }

    /// What the other nodes have handed over, each by its number; waits for it until `end`. Nodes are missing that have
    /// handed over nothing, and those for whose descriptors this process has no room.
    ///
    /// Descriptors arrive at numbers that the system chooses, and close on exec.
    #[must_use]
    pub fn handed(self, end: Instant) -> Vec<(u16, Offer)> {
        let mut offers = vec![];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], left.as_ref()) {
                Err(Errno::INTR) => continue,
                Ok(1..) => {}
                _ => return offers,
            }
            let mut words = [0; (1 + AT_ONCE) * size_of::<u16>()];
            let Ok((length, descriptors)) = self.receive(&mut words) else { return offers };
            let (words, _) = words[..length].as_chunks();
            let mut words = words.iter().map(|word| u16::from_le_bytes(*word));
            let Some(later) = words.next() else { return offers };
            let mut descriptors = descriptors.into_iter();
            offers.extend(words.map_while(|number| {
                let offer: Vec<OwnedFd> = descriptors.by_ref().take(EACH).collect();
                Some((number, offer.try_into().ok()?))
            }));
            if later == 0 {
                return offers;
            }
        }
    }

    /// The launcher takes what the node hands over; `None` if that is nothing. Does not wait: an error of the kind
    /// [`io::ErrorKind::WouldBlock`] if the node has not said.
    ///
    /// # Errors
    /// Of the system.
    pub fn take(&self) -> io::Result<Option<Offer>> {
        let (length, descriptors) = self.receive(&mut [0])?;
        // Without room for all of them in this process, some are missing.
        Ok(descriptors.try_into().ok().filter(|_| length > 0))
    }

    /// The launcher gives the node what the first of these nodes, by their numbers, have handed over; returns how many
    /// nodes that is. It is to be called with the others until none is left, and once if there are none. Does not wait: an
    /// error of the kind [`io::ErrorKind::WouldBlock`] if too many descriptors of this user are on their way.
    ///
    /// # Errors
    /// Of the system.
    pub fn hand(&self, others: &[(u16, &Offer)]) -> io::Result<usize> {
        let (now, later) = others.split_at(others.len().min(AT_ONCE));
        let mut words = u16::try_from(later.len()).map_err(io::Error::other)?.to_le_bytes().to_vec();
        words.extend(now.iter().flat_map(|(number, _)| number.to_le_bytes()));
        let descriptors: Vec<_> = now.iter().flat_map(|(_, offer)| offer.iter().map(AsFd::as_fd)).collect();
        self.send(&words, &descriptors)?;
        Ok(now.len())
    }

    fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
        let mut attached = SendAncillaryBuffer::new(&mut space);
        if !attached.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        loop {
            match sendmsg(&self.0, &[IoSlice::new(bytes)], &mut attached, flags) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::TOOMANYREFS) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Receives one message, without waiting: its length, 0 if the other end is closed, and what is attached.
    fn receive(&self, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
        let mut attached = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(bytes)], &mut attached, flags) {
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Ok((0, vec![])),
                result => break result?,
            }
        };
        let descriptors = attached.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
            _ => vec![],
        });
        Ok((received.bytes, descriptors.collect()))
    }
}

impl AsRawFd for Exchange {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::FromRawFd;

    fn offer(node: u16) -> Offer {
        [0, 1, 2].map(|part| {
            // SAFETY: the name is a C string, and the descriptor is new.
            let file = unsafe { File::from_raw_fd(libc::memfd_create(c"offer".as_ptr(), libc::MFD_CLOEXEC)) };
            file.set_len(length(node, part)).unwrap();
            file.into()
        })
    }

    /// By its length each file is known again.
    fn length(node: u16, part: u64) -> u64 {
        u64::from(node) * EACH as u64 + part
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    fn lengths(handed: Vec<(u16, Offer)>) -> Vec<(u16, Vec<u64>)> {
        let length = |fd: OwnedFd| File::from(fd).metadata().unwrap().len();
        handed.into_iter().map(|(node, offer)| (node, offer.into_iter().map(length).collect())).collect()
    }

    /// What the others hand over takes more than one message.
    #[test]
    fn many_nodes_get_what_the_others_have_handed_over() {
        let nodes = u16::try_from(AT_ONCE).unwrap() + 7;
        let offers: Vec<_> = (0..nodes).map(|node| (node, offer(node))).collect();
        for me in [0, 70, nodes - 1] {
            let (launcher, end) = Exchange::pair().unwrap();
            assert_eq!(launcher.take().unwrap_err().kind(), io::ErrorKind::WouldBlock);
            end.offer(&offers[usize::from(me)].1.each_ref().map(AsFd::as_fd), soon()).unwrap();
            assert_eq!(lengths(vec![(me, launcher.take().unwrap().unwrap())])[0].1[1], length(me, 1));
            let others = offers.iter().filter(|(node, _)| *node != me);
            let others: Vec<_> = others.map(|(node, offer)| (*node, offer)).collect();
            let node = std::thread::spawn(move || lengths(end.handed(soon())));
            let mut given = 0;
            while given < others.len() {
                match launcher.hand(&others[given..]) {
                    Ok(more) => given += more,
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            }
            let expected = (0..nodes).filter(|&node| node != me);
            let expected = expected.map(|node| (node, (0..3).map(|part| length(node, part)).collect()));
            assert_eq!(node.join().unwrap(), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_node_without_others_learns_that() {
        let (launcher, node) = Exchange::pair().unwrap();
        assert_eq!(launcher.hand(&[]).unwrap(), 0);
        assert!(node.handed(soon()).is_empty());
    }

    #[test]
    fn an_end_that_is_closed_hands_over_nothing() {
        let (launcher, node) = Exchange::pair().unwrap();
        drop(node);
        assert!(launcher.take().unwrap().is_none());
        assert_eq!(launcher.hand(&[(1, &offer(1))]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        let (launcher, node) = Exchange::pair().unwrap();
        drop(launcher);
        assert!(node.handed(soon()).is_empty());
    }

    #[test]
    fn a_launcher_that_is_silent_is_waited_for_until_the_end_of_the_time() {
        let (_launcher, node) = Exchange::pair().unwrap();
        let begin = Instant::now();
        assert!(node.handed(begin + Duration::from_millis(30)).is_empty());
        assert!((30..10_000).contains(&begin.elapsed().as_millis()));
    }
}
