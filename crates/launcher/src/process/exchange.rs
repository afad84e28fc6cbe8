//! The launcher's part in the exchange of descriptors: it collects those of each node, and passes them to all others.

use gondwana_control::{Exchange, Offer};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, RawFd};

/// The nodes that exchange descriptors, until each has those of all others.
#[derive(Default)]
pub(super) struct Collection {
    members: Vec<Member>,
    held_up: bool,
}

struct Member {
    node: u16,
    /// `None` once the node has closed its end.
    channel: Option<Exchange>,
    given: Given,
    /// The number of other nodes whose descriptors it has been sent; `None` once it has all.
    unserved_from: Option<usize>,
}

/// The descriptors of a node.
enum Given {
    /// Not received yet.
    Awaited,
    Offer(Offer),
    Nothing,
}

impl Collection {
    /// Another node takes part. All must be known before the first call of [`Collection::go_on`].
    pub(super) fn add(&mut self, node: u16, channel: Exchange) {
        self.members.push(Member {
            node,
            channel: Some(channel),
            given: Given::Awaited,
            unserved_from: Some(0),
        });
    }

    /// The descriptors to watch: when one is readable or closed, call [`Collection::go_on`].
    pub(super) fn channels(&self) -> impl Iterator<Item = RawFd> {
        self.members.iter().filter_map(|member| member.channel.as_ref()).map(AsRawFd::as_raw_fd)
    }

    /// True if [`Collection::go_on`] is to be called soon whatever happens to the channels: too many descriptors of this
    /// user are on their way, and they may be another run's.
    pub(super) fn is_held_up(&self) -> bool {
        self.held_up
    }

    /// The process of a node has ended: its descriptors are not awaited any more.
    pub(super) fn ended(&mut self, node: u16) {
        for member in self.members.iter_mut().filter(|member| member.node == node) {
            member.hear();
            member.close();
        }
        self.go_on();
    }

    /// Receives the descriptors of nodes, and passes them on once all have sent theirs. Never waits.
    pub(super) fn go_on(&mut self) {
        self.members.iter_mut().for_each(Member::hear);
        if self.members.iter().any(|member| matches!(member.given, Given::Awaited)) {
            return;
        }
        self.held_up = false;
        for index in 0..self.members.len() {
            match self.serve(index) {
                Ok(()) => {}
                // A node that has received all closes its end, which makes room.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.held_up = true;
                    return;
                }
                Err(_) => self.members[index].close(),
            }
        }
        self.members.clear();
    }

    /// Sends a node the descriptors of the others, as far as it waits for them.
    fn serve(&mut self, index: usize) -> std::io::Result<()> {
        while let Some(from) = self.members[index].unserved_from {
            let member = &self.members[index];
            let Some(channel) = &member.channel else { return Ok(()) };
            let others = self.members.iter().filter(|other| other.node != member.node);
            let others: Vec<_> = others
                .filter_map(|other| match &other.given {
                    Given::Offer(offer) => Some((other.node, offer)),
                    Given::Awaited | Given::Nothing => None,
                })
                .collect();
            let to = from + channel.hand(&others[from..])?;
            let is_all = to == others.len();
            self.members[index].unserved_from = (!is_all).then_some(to);
        }
        Ok(())
    }
}

impl Member {
    fn hear(&mut self) {
        match self.channel.as_ref().map(Exchange::take) {
            Some(Ok(Some(offer))) => self.given = Given::Offer(offer),
            Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => {}
            Some(Ok(None) | Err(_)) => self.close(),
            None => {}
        }
    }

    /// Ends the exchange with a node. Descriptors that it has sent stay valid.
    fn close(&mut self) {
        self.channel = None;
        if matches!(self.given, Given::Awaited) {
            self.given = Given::Nothing;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd, OwnedFd};
    use std::time::{Duration, Instant};

    /// A collection, and the nodes' ends.
    fn collection(nodes: u16) -> (Collection, Vec<Exchange>) {
        let mut collection = Collection::default();
        let end = |node| {
            let (ours, theirs) = Exchange::pair().unwrap();
            collection.add(node, ours);
            theirs
        };
        let ends = (0..nodes).map(end).collect();
        (collection, ends)
    }

    fn give(end: &Exchange) {
        let null = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        end.offer(&[null.as_fd(); 3], soon()).unwrap();
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    /// The nodes whose descriptors this node has received.
    fn got(end: Exchange) -> Vec<u16> {
        end.handed(soon()).into_iter().map(|(node, _)| node).collect()
    }

    #[test]
    fn nothing_is_handed_out_before_all_have_said() {
        let (mut collection, mut ends) = collection(3);
        give(&ends[0]);
        collection.go_on();
        give(&ends[2]);
        collection.go_on();
        assert_eq!(collection.channels().count(), 3);
        give(&ends[1]);
        collection.go_on();
        assert_eq!(collection.channels().count(), 0);
        assert_eq!(got(ends.remove(0)), [1, 2]);
        assert_eq!(got(ends.remove(0)), [0, 2]);
        assert_eq!(got(ends.remove(0)), [0, 1]);
    }

    #[test]
    fn nobody_waits_for_a_node_that_has_nothing_or_has_ended() {
        let (mut collection, mut ends) = collection(4);
        give(&ends[0]);
        give(&ends[3]);
        drop(ends.remove(1));
        collection.go_on();
        // A child of it may hold its end.
        collection.ended(2);
        assert_eq!(collection.channels().count(), 0);
        assert_eq!(got(ends.remove(0)), [3]);
        assert_eq!(got(ends.remove(1)), [0]);
        assert!(got(ends.remove(0)).is_empty());
    }

    #[test]
    fn who_has_given_up_does_not_keep_the_others_from_its_memory() {
        let (mut collection, mut ends) = collection(3);
        give(&ends[0]);
        give(&ends[1]);
        collection.go_on();
        // Node 0 has stopped waiting for node 2, which is late.
        drop(ends.remove(0));
        collection.go_on();
        give(&ends[1]);
        collection.go_on();
        assert_eq!(got(ends.remove(1)), [0, 1]);
        assert_eq!(got(ends.remove(0)), [0, 2]);
    }

    #[test]
    fn a_node_alone_gets_nothing_at_once() {
        let (mut collection, mut ends) = collection(1);
        give(&ends[0]);
        collection.go_on();
        assert!(got(ends.remove(0)).is_empty());
    }

    /// As an ordinary user whose limit on open files is a small one.
    #[test]
    fn as_many_descriptors_as_the_kernel_lets_a_user_have_on_their_way_are_enough() {
        const NODES: u16 = 12;
        // SAFETY: the child uses what it has copied, and ends without running anything of the parent's.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let passed = std::panic::catch_unwind(|| {
                become_nobody_with(128);
                let (mut collection, ends) = collection(NODES);
                ends.iter().for_each(|end| {
                    give(end);
                    collection.go_on();
                });
                // 33 descriptors for each node: the fifth message does not fit in any more.
                assert!(collection.is_held_up());
                // One node after the other: the same limit is on the descriptors that this process has.
                for (me, end) in (0..).zip(ends) {
                    assert!(got(end).into_iter().eq((0..NODES).filter(|&other| other != me)));
                    collection.go_on();
                }
                assert!(!collection.is_held_up());
            });
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(passed.is_err())) };
        }
        let mut status = 0;
        // SAFETY: the kernel writes one status.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child says why");
    }

    /// Makes this process an unprivileged user's, with this limit on descriptors in flight.
    fn become_nobody_with(limit: u64) {
        let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
        // SAFETY: plain system calls; the limit is on the stack.
        unsafe {
            if libc::geteuid() == 0 {
                assert_eq!(libc::setresuid(60_000, 60_000, 60_000), 0);
            }
            assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
        }
    }
}
