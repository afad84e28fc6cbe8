//! The binding of one thread: its processors and its memory policy.

use crate::sys::{self, Policy};
use crate::unmet_request::UnmetRequest;
use gondwana_topology::{NodeSet, ProcessorSet};
use std::fmt;
use std::io;
use std::str::FromStr;

/// Processors and a policy for memory, for a thread that is bound to both.
///
/// Its text, such as `0-3/bind:0`, carries it to other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Where the thread may run.
    pub processors: ProcessorSet,
    /// Its memory policy.
    pub policy: Policy,
}

impl Binding {
    /// Binds the calling thread, as far as the kernel permits, and returns the unmet requests.
    ///
    /// Reads the result back: cpusets remove processors and nodes without an error as long as any are left.
    #[must_use]
    pub fn apply(&self) -> Vec<UnmetRequest> {
        [self.apply_processors(), self.policy.apply()].into_iter().flatten().collect()
    }

    fn apply_processors(&self) -> Option<UnmetRequest> {
        // Asking first spares threads that inherit the right processors a call that may move them.
        match sys::affinity(0) {
            Ok(now) if now == self.processors => return None,
            _ => {}
        }
        let bound = sys::set_affinity(0, &self.processors).and_then(|()| sys::affinity(0));
        match bound {
            Ok(found) => UnmetRequest::processors(&self.processors, &found),
            Err(error) => Some(UnmetRequest::refused("binding threads", &error)),
        }
    }
}

impl Policy {
    /// Makes it the policy of the calling thread, as far as the kernel permits, and returns the unmet request.
    #[must_use]
    pub fn apply(&self) -> Option<UnmetRequest> {
        // A huge page would be 512 consecutive pages on one node. A kernel without huge pages refuses, which does not
        // matter.
        if matches!(self, Self::Interleave(nodes) if nodes.len() > 1) {
            let _ = sys::without_huge_pages_at_all();
        }
        let set = sys::set_policy(self).and_then(|()| sys::policy());
        match (set, *self) {
            (Ok(found), asked) if found == asked => None,
            (Ok(Policy::Bind(found)), Policy::Bind(asked))
            | (Ok(Policy::Interleave(found)), Policy::Interleave(asked))
            | (Ok(Policy::Prefer(found)), Policy::Prefer(asked)) => UnmetRequest::nodes(&asked, &found),
            (Ok(found), asked) => {
                Some(UnmetRequest::Other(format!("{asked} was asked for, and the kernel has {found}")))
            }
            // A kernel without NUMA behaves like this anyway.
            (Err(error), Policy::Default | Policy::Local) if is_without_numa(&error) => None,
            (Err(error), _) => Some(UnmetRequest::refused("binding memory", &error)),
        }
    }
}

fn is_without_numa(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOSYS)
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.processors, self.policy)
    }
}

impl FromStr for Binding {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let (processors, policy) = text.split_once('/').ok_or(Malformed)?;
        let processors: ProcessorSet = processors.parse().map_err(|_| Malformed)?;
        if processors.is_empty() { Err(Malformed) } else { Ok(Self { processors, policy: policy.parse()? }) }
    }
}

/// A text that is no binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no binding of a thread such as 0-3/bind:0")]
pub struct Malformed;

/// The terms of `numactl` and of the kernel's files.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Local => f.write_str("local"),
            Self::Bind(nodes) => write!(f, "bind:{nodes}"),
            Self::Interleave(nodes) => write!(f, "interleave:{nodes}"),
            Self::Prefer(nodes) => write!(f, "prefer:{nodes}"),
        }
    }
}

impl FromStr for Policy {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let (word, nodes) = text.split_once(':').unwrap_or((text, ""));
        // An empty list is a set too, but memory needs a node.
        let nodes = || nodes.parse().ok().filter(|nodes: &NodeSet| !nodes.is_empty()).ok_or(Malformed);
        match word {
            "default" => Ok(Self::Default),
            "local" => Ok(Self::Local),
            "bind" => Ok(Self::Bind(nodes()?)),
            "interleave" => Ok(Self::Interleave(nodes()?)),
            "prefer" => Ok(Self::Prefer(nodes()?)),
            _ => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_topology::{NodeId, ProcessorId};

    #[test]
    fn texts_come_back_as_they_were() {
        for text in ["0-3,8/bind:0-1", "1/default", "1/local", "0/interleave:0,2", "7/prefer:3"] {
            assert_eq!(text.parse::<Binding>().unwrap().to_string(), text);
        }
        for text in ["", "0", "0/", "/local", "x/local", "0/bind", "0/bind:x", "0/near:1"] {
            assert_eq!(text.parse::<Binding>(), Err(Malformed), "{text}");
        }
    }

    #[test]
    fn a_thread_is_bound() {
        let processors = ProcessorSet::only(sys::affinity(0).unwrap().first().unwrap());
        let nodes = sys::allowed_nodes().unwrap();
        let binding = Binding { processors, policy: Policy::Bind(nodes) };
        assert_eq!(binding.apply(), []);
        assert_eq!((sys::affinity(0).unwrap(), sys::policy().unwrap()), (processors, Policy::Bind(nodes)));
    }

    #[test]
    fn what_the_kernel_takes_away_is_said() {
        let mut processors = sys::affinity(0).unwrap();
        processors.insert(ProcessorId(4000));
        let mut nodes = sys::allowed_nodes().unwrap();
        nodes.insert(NodeId(60));
        let binding = Binding { processors, policy: Policy::Bind(nodes) };
        let remarks: Vec<String> = binding.apply().iter().map(ToString::to_string).collect();
        assert!(remarks[0].starts_with("processors 4000 were asked for and"), "{remarks:?}");
        assert!(remarks[1].contains("node"), "{remarks:?}");
        let nothing = Binding {
            processors: ProcessorSet::only(ProcessorId(4000)),
            policy: Policy::Bind(NodeSet::only(NodeId(60))),
        };
        let remarks: Vec<String> = nothing.apply().iter().map(ToString::to_string).collect();
        assert!(remarks[0].starts_with("binding threads is refused by the kernel: a cpuset"), "{remarks:?}");
        assert!(remarks[1].starts_with("binding memory is refused by the kernel: a cpuset"), "{remarks:?}");
    }
}
