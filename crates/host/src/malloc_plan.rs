//! The rules for the placement of a program's own allocations.

use crate::allocate::Extras;
use crate::binding::Malformed;
use std::fmt;
use std::str::FromStr;

/// The environment variable with the rules.
pub const MALLOC_VARIABLE: &str = "GONDWANA_MALLOC";

/// Rules for the allocations of a program.
///
/// Its text form, settings on the first line and a rule on each of the others, is passed to other processes. Rules
/// are texts for `AllocationRule::parse`: resolving a policy needs the discovery of the computer, which takes time
/// and is deferred until a rule is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MallocPlan {
    /// The process that reports all rules at its end, also unused ones; other processes report used rules only.
    /// `None`: no reports.
    pub report: Option<Reporter>,
    /// Additional properties of the memory.
    pub extras: Extras,
    /// The rules; the first that an allocation fits counts.
    pub rules: Vec<String>,
}

/// A process that is the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reporter {
    /// The process with this number.
    Process(u32),
    /// The child of the process with this number.
    ChildOf(u32),
}

impl Reporter {
    /// True if the calling process is meant.
    #[must_use]
    pub fn is_me(self) -> bool {
        match self {
            Self::Process(process) => process == std::process::id(),
            Self::ChildOf(parent) => parent == std::os::unix::process::parent_id(),
        }
    }
}

impl fmt::Display for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(process) => write!(f, "{process}"),
            Self::ChildOf(parent) => write!(f, "child-of-{parent}"),
        }
    }
}

impl FromStr for Reporter {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let number = |text: &str| text.parse().map_err(|_| Malformed);
        match text.strip_prefix("child-of-") {
            Some(parent) => Ok(Self::ChildOf(number(parent)?)),
            None => Ok(Self::Process(number(text)?)),
        }
    }
}

impl fmt::Display for MallocPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Extras { prefault, lock, small_pages, colours, strict } = self.extras;
        let mut settings = vec![];
        settings.extend(self.report.map(|process| format!("report={process}")));
        settings.extend(prefault.then(|| "prefault".to_owned()));
        settings.extend(lock.then(|| "lock".to_owned()));
        settings.extend(small_pages.then(|| "small-pages".to_owned()));
        settings.extend(strict.then(|| "strict".to_owned()));
        settings.extend(colours.map(|colours| format!("colours={colours}")));
        f.write_str(&settings.join(" "))?;
        self.rules.iter().try_for_each(|rule| write!(f, "\n{rule}"))
    }
}

impl FromStr for MallocPlan {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let mut lines = text.split('\n');
        let mut plan = Self::default();
        for setting in lines.next().unwrap_or_default().split_whitespace() {
            match setting.split_once('=') {
                Some(("report", reporter)) => plan.report = Some(reporter.parse()?),
                Some(("colours", colours)) => {
                    plan.extras.colours = Some(colours.parse().map_err(|_| Malformed)?);
                }
                None if setting == "prefault" => plan.extras.prefault = true,
                None if setting == "lock" => plan.extras.lock = true,
                None if setting == "small-pages" => plan.extras.small_pages = true,
                None if setting == "strict" => plan.extras.strict = true,
                _ => return Err(Malformed),
            }
        }
        plan.rules = lines.map(str::to_owned).collect();
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_a_process_or_the_child_of_one() {
        let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
        assert!(Reporter::Process(own).is_me() && Reporter::ChildOf(parent).is_me());
        assert!(!Reporter::Process(parent).is_me() && !Reporter::ChildOf(own).is_me());
    }

    #[test]
    fn texts_come_back_as_they_were() {
        for text in [
            "",
            "\nall=local",
            "report=child-of-7",
            "report=7 prefault lock small-pages strict colours=16\n>=1M=striped:4\nf+0x1a=mem:1@mem:0-1",
        ] {
            assert_eq!(text.parse::<MallocPlan>().unwrap().to_string(), text);
        }
        for text in ["report", "report=x", "report=child-of-", "colours=-1", "fast", "strict=1"] {
            assert_eq!(text.parse::<MallocPlan>(), Err(Malformed), "{text}");
        }
    }
}
