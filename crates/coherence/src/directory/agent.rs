use super::{Answer, Demand, Message, Node, Request, State, Violation};

/// A request that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Pending {
    request: Request,
    /// Replies that have come.
    replies: u8,
}

/// One node's side of one line: asks the home for it, and does what the home demands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Agent {
    node: Node,
    home: Node,
    state: State,
    pending: Option<Pending>,
}

impl Agent {
    /// The agent in `node` of a line with its home in `home`, of which the node has this.
    #[inline]
    #[must_use]
    pub fn new(node: Node, home: Node, state: State) -> Self {
        Self { node, home, state, pending: None }
    }

    /// What the node may do with the line.
    #[inline]
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// True if no request is under way.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.pending.is_none()
    }

    /// The node drops a line that it shares, without telling anybody.
    #[inline]
    pub fn drop_shared(&mut self) {
        if self.state == State::Shared && self.pending.is_none() {
            self.state = State::Invalid;
        }
    }

    /// Starts a request; returns the message for the home. One at a time: the node's bus orders the processors'.
    #[inline]
    pub fn request(&mut self, request: Request) -> Message {
        self.pending = Some(Pending { request, replies: 0 });
        Message::Request(request)
    }

    /// Takes a message; appends the answers with their receivers. True if the request that was under way is complete.
    ///
    /// # Errors
    /// If the protocol does not allow for it.
    #[inline]
    pub fn receive(
        &mut self,
        from: Node,
        message: Message,
        keeps: bool,
        out: &mut Vec<(Node, Message)>,
    ) -> Result<bool, Violation> {
        let violation = |agent: &Self| Violation { to: "agent", state: format!("{agent:?}"), from, message };
        match (message, self.pending) {
            (Message::Demand { demand, answer }, _) => {
                let owns = matches!(self.state, State::Owned | State::Modified);
                if owns != (demand != Demand::Invalidate) {
                    return Err(violation(self));
                }
                let data = demand != Demand::Invalidate;
                self.state = if demand == Demand::Supply { State::Owned } else { State::Invalid };
                out.push(match answer {
                    Answer::Requester { requester, replies } => (requester, Message::Reply { data, replies }),
                    Answer::Home => (self.home, Message::Return { data }),
                });
                return Ok(false);
            }
            (Message::Reply { replies, .. }, Some(mut pending)) if pending.request != Request::WriteBack => {
                pending.replies += 1;
                self.pending = Some(pending);
                if pending.replies < replies {
                    return Ok(false);
                }
                self.state = if pending.request == Request::Own { State::Modified } else { State::Shared };
                out.push((self.home, Message::Complete));
            }
            (Message::Grant, Some(Pending { request: Request::Own, .. })) => {
                self.state = State::Modified;
                out.push((self.home, Message::Complete));
            }
            (Message::Grant, Some(Pending { request: Request::Read, .. })) => {
                out.push((self.home, Message::Complete));
            }
            (Message::Grant, Some(Pending { request: Request::WriteBack, .. })) => {
                self.state = if keeps { State::Shared } else { State::Invalid };
                out.push((self.home, Message::WriteBackData { keeps }));
            }
            (Message::Cancel, Some(Pending { request: Request::WriteBack, .. })) => {}
            _ => return Err(violation(self)),
        }
        self.pending = None;
        Ok(true)
    }

    /// The memory of the home has taken a writeback: the home's own agent owns the line again. A controller's two parts
    /// share the state of the node's memory (WildFire's MTAG), so no message says so.
    #[inline]
    pub fn follow(&mut self, state: State) {
        self.state = state;
    }

    /// The node.
    #[inline]
    #[must_use]
    pub fn node(&self) -> Node {
        self.node
    }
}
