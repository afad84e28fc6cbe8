//! What a peer can do wrong.

use crate::Page;
use thiserror::Error;

/// A peer sent something that the protocol forbids. The run must end: the memory can't be trusted any more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// The bytes encode no message of the protocol that this machine speaks.
    #[error("an unintelligible coherence message arrived")]
    Unintelligible,
    /// Pages that don't exist.
    #[error("{count} pages from page {} are not inside the span", .first.0)]
    OutsideSpan {
        /// The first of the pages.
        first: Page,
        /// How many pages were meant.
        count: u32,
    },
    /// The bytes beside a message don't fit what the message says.
    #[error("the contents of a {message} message don't fit its header")]
    Contents {
        /// The message's name.
        message: &'static str,
    },
    /// A message that makes no sense in the state that the page is in.
    #[error("a {message} message makes no sense for page {} now", .page.0)]
    Unexpected {
        /// The message's name.
        message: &'static str,
        /// The page it was about.
        page: Page,
    },
    /// An acknowledgement of a flush that is not in progress.
    #[error("flush {flush} was acknowledged but is not in progress")]
    UnknownFlush {
        /// The flush's number.
        flush: u64,
    },
    /// A node that doesn't exist, or the receiver itself where that makes no sense.
    #[error("a {message} message names node {node}, which can't be")]
    Node {
        /// The message's name.
        message: &'static str,
        /// The node's number.
        node: u16,
    },
}
