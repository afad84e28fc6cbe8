//! The user's policies for threads and memory, on the nodes of a run.

use super::options::RunOptions;
use super::plan;
use crate::capabilities::DEFAULT_SPAN;
use crate::names::parsed;
use crate::probes;
use crate::program::Program;
use gondwana_console::failure::Failure;
use gondwana_control::{Homes, ThreadGroup, machine};
use gondwana_plan::{Plan, Traffic};
use gondwana_rset::{MemoryPolicy, Placement, PlacementError, RSet, Registry, ThreadPlan, ThreadPolicy};

/// Where threads and pages go.
#[derive(Clone, Debug, PartialEq)]
pub struct Policies {
    /// Threads.
    pub threads: ThreadPolicy,
    /// Threads that the plan names.
    pub groups: Vec<ThreadGroup>,
    /// Homes of pages.
    pub homes: Homes,
    plan: Plan,
    /// The number of processors of each node, for sets that name processors.
    pub processors_each: u16,
}

impl Policies {
    /// The policies of the options.
    pub fn of(options: &RunOptions) -> Result<Self, Failure> {
        let nodes = options.nodes()?;
        let share = probes::share(probes::processors(), usize::from(nodes));
        let processors_each = options.processors()?.unwrap_or(share);
        let machine = machine(nodes, processors_each, options.span()?.unwrap_or(DEFAULT_SPAN));
        let (threads, memory) = (options.threads.as_str(), options.memory.as_str());
        // The file of named sets is read only if a set is used.
        let plain = |text: &str| matches!(text, "fill" | "round-robin" | "float" | "local" | "remote");
        let names = match plain(threads) && plain(memory) && options.plan.is_none() {
            true => Registry::default(),
            false => crate::names::named_sets()?,
        };
        let threads = parsed("--threads", threads, ThreadPolicy::parse, &machine, &names)?;
        let policy = parsed("--memory", memory, MemoryPolicy::parse, &machine, &names)?;
        let global = RSet::global(&machine);
        let refused = |option: &str, error: PlacementError| Failure::usage(format!("{option}: {error}"));
        ThreadPlan::new(threads.clone(), &global, &machine).map_err(|error| refused("--threads", error))?;
        Placement::new(policy, &global, &machine).map_err(|error| refused("--memory", error))?;
        let plan = options.plan.as_ref().map(|path| plan::read(path, &machine, &names)).transpose()?;
        let homes = Homes { policy, rules: vec![] };
        let plan = plan.unwrap_or_default();
        let groups = plan::groups(&plan);
        Ok(Self { threads, groups, homes, plan, processors_each })
    }

    /// True if homes of pages are asked for.
    pub fn place_memory(&self) -> bool {
        self.homes != Homes::default()
    }

    /// The requests of the run that the plan was made from.
    pub fn before(&self) -> Option<Traffic> {
        self.plan.before
    }

    /// The expected requests of a run with the plan.
    pub fn expected(&self) -> Option<Traffic> {
        self.plan.expected
    }

    /// Adds the plan, resolved for this program; prints what cannot be resolved.
    pub fn with_plan(mut self, options: &RunOptions, program: &Program) -> Result<Self, Failure> {
        let Some(path) = &options.plan else { return Ok(self) };
        let (rules, missing) = plan::resolve(&self.plan, path, &program.path);
        for sentence in &missing {
            eprintln!("gondwana: {sentence}");
        }
        if options.strict && !missing.is_empty() {
            return Err(Failure::cannot("the program was not started, because of --strict"));
        }
        self.homes.rules = rules;
        Ok(self)
    }
}
