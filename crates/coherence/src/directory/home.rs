use super::{Answer, Demand, Hops, Message, Node, Request, State, Violation};
use std::collections::VecDeque;

/// What the directory has of a line: which nodes may have it, and which one of them owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The node that supplies the line to others. If it is the home, memory has the line's contents.
    pub owner: Node,
    /// One bit for each node that may have the line, the owner included.
    pub sharers: u64,
}

impl Entry {
    /// Of a line that only its home has.
    #[inline]
    #[must_use]
    pub fn of_home(home: Node) -> Self {
        Self { owner: home, sharers: 1 << home }
    }

    /// What a node may do with the line.
    #[inline]
    #[must_use]
    pub fn state(&self, node: Node) -> State {
        match (self.sharers >> node & 1 == 1, self.owner == node) {
            (false, _) => State::Invalid,
            (true, false) => State::Shared,
            (true, true) if self.sharers == 1 << node => State::Modified,
            (true, true) => State::Owned,
        }
    }
}

/// The home of one line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Home {
    node: Node,
    entry: Entry,
    /// The request that it works on.
    current: Option<(Node, Request)>,
    /// Those that wait, in the order of arrival.
    waiting: VecDeque<(Node, Request)>,
    hops: Hops,
    /// Of four hops: answers that are still to come, and whether the line's contents have.
    awaited: u8,
    data: bool,
}

impl Home {
    /// The home in `node` of a line with this entry.
    #[inline]
    #[must_use]
    pub fn new(node: Node, entry: Entry, hops: Hops) -> Self {
        Self { node, entry, current: None, waiting: VecDeque::new(), hops, awaited: 0, data: false }
    }

    /// What the directory has now.
    #[inline]
    #[must_use]
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// True if it works on no request.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Takes a message; appends the answers with their receivers.
    ///
    /// # Errors
    /// If the protocol does not allow for it.
    #[inline]
    pub fn receive(
        &mut self,
        from: Node,
        message: Message,
        out: &mut Vec<(Node, Message)>,
    ) -> Result<(), Violation> {
        match (message, self.current) {
            (Message::Request(request), None) => {
                self.begin(from, request, out);
                return Ok(());
            }
            (Message::Request(request), Some(_)) => {
                self.waiting.push_back((from, request));
                return Ok(());
            }
            (Message::Return { data }, Some((requester, _))) if self.awaited > 0 => {
                self.awaited -= 1;
                self.data |= data;
                if self.awaited == 0 {
                    let data = std::mem::take(&mut self.data);
                    out.push((requester, Message::Reply { data, replies: 1 }));
                }
                return Ok(());
            }
            (Message::Complete, Some((requester, Request::Read))) if requester == from => {
                self.entry.sharers |= 1 << from;
            }
            (Message::Complete, Some((requester, Request::Own))) if requester == from => {
                self.entry = Entry { owner: from, sharers: 1 << from };
            }
            (Message::WriteBackData { keeps }, Some((requester, Request::WriteBack)))
                if requester == from =>
            {
                if !keeps {
                    self.entry.sharers &= !(1 << from);
                }
                self.entry.owner = self.node;
                self.entry.sharers |= 1 << self.node;
            }
            _ => {
                return Err(Violation { to: "home", state: format!("{self:?}"), from, message });
            }
        }
        self.current = None;
        // A canceled writeback ends at once, so several waiting requests may begin.
        while self.current.is_none()
            && let Some((from, request)) = self.waiting.pop_front()
        {
            self.begin(from, request, out);
        }
        Ok(())
    }

    /// Who gets so many answers.
    fn answer(&mut self, requester: Node, replies: u8) -> Answer {
        match self.hops {
            Hops::Three => Answer::Requester { requester, replies },
            Hops::Four => {
                self.awaited = replies;
                Answer::Home
            }
        }
    }

    fn begin(&mut self, requester: Node, request: Request, out: &mut Vec<(Node, Message)>) {
        self.current = Some((requester, request));
        let Entry { owner, sharers } = self.entry;
        match request {
            // It waited for a writeback that made the home's node the owner.
            Request::Read if owner == requester => out.push((requester, Message::Grant)),
            Request::Read => {
                let answer = self.answer(requester, 1);
                out.push((owner, Message::Demand { demand: Demand::Supply, answer }));
            }
            Request::Own => {
                let others = sharers & !(1 << requester);
                if others == 0 {
                    out.push((requester, Message::Grant));
                }
                let replies = u8::try_from(others.count_ones()).expect("a map has 64 bits");
                let answer = self.answer(requester, replies);
                for node in nodes_in(others) {
                    let demand = if node == owner { Demand::SupplyAndInvalidate } else { Demand::Invalidate };
                    out.push((node, Message::Demand { demand, answer }));
                }
            }
            Request::WriteBack if owner == requester => out.push((requester, Message::Grant)),
            Request::WriteBack => {
                out.push((requester, Message::Cancel));
                self.current = None;
            }
        }
    }
}

/// The nodes of a map, ascending.
fn nodes_in(mut map: u64) -> impl Iterator<Item = Node> {
    std::iter::from_fn(move || {
        let node = Node::try_from(map.trailing_zeros()).ok().filter(|_| map != 0);
        map &= map.wrapping_sub(1);
        node
    })
}
