//! A plan that follows another one.

use crate::{Allocation, Plan, Variable};

impl Plan {
    /// True if it is about nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty() && self.allocations.is_empty() && self.threads.is_empty()
    }

    /// This plan, with what an earlier one says about other memory, and if this one says nothing about threads about
    /// threads: what that has saved must not be lost.
    #[must_use]
    pub fn keeping(mut self, earlier: &Self) -> Self {
        let variable = |entry: &Variable| (entry.name.clone(), entry.library.clone());
        let allocation = |entry: &Allocation| {
            let Allocation { site, caller, library, min_bytes, max_bytes, .. } = entry.clone();
            (site, caller, library, min_bytes, max_bytes)
        };
        let known: Vec<_> = self.variables.iter().map(variable).collect();
        let others = earlier.variables.iter().filter(|entry| !known.contains(&variable(entry)));
        self.variables.extend(others.cloned());
        let known: Vec<_> = self.allocations.iter().map(allocation).collect();
        let others = earlier.allocations.iter().filter(|entry| !known.contains(&allocation(entry)));
        self.allocations.extend(others.cloned());
        // New groups are about all threads.
        if self.threads.is_empty() {
            self.threads.clone_from(&earlier.threads);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_rset::Registry;
    use gondwana_topology::{Bytes, Machine};

    fn plan(text: &str) -> Plan {
        let machine = Machine::uniform(2, 1, Bytes(1 << 30));
        Plan::parse(&format!("version = 1\n{text}"), &machine, &Registry::default()).unwrap()
    }

    #[test]
    fn new_entries_take_the_place_of_earlier_ones() {
        let entry =
            |name: &str, policy: &str| format!("[[variable]]\nname = \"{name}\"\npolicy = \"{policy}\"\n");
        let threads = "[[thread]]\nthreads = [1]\nnode = 1\n";
        let earlier = plan(&(entry("a", "block") + &entry("b", "local") + threads));
        let both = plan(&entry("b", "block")).keeping(&earlier);
        let names: Vec<_> = both.variables.iter().map(|it| (it.name.as_str(), it.homes.clone())).collect();
        let block = plan(&entry("b", "block")).variables[0].homes.clone();
        assert_eq!(names, [("b", block.clone()), ("a", block)]);
        assert_eq!(both.threads, earlier.threads);
        assert!(Plan::default().is_empty() && !earlier.is_empty());
        assert_eq!(Plan::default().keeping(&earlier).allocations, earlier.allocations);
    }

    #[test]
    fn allocations_of_other_sizes_are_others() {
        let entry = |least: u32, policy: &str| {
            format!("[[allocation]]\nsite = \"make+0x9\"\nmin_bytes = {least}\npolicy = \"{policy}\"\n")
        };
        let both =
            plan(&entry(4096, "block")).keeping(&plan(&(entry(8192, "local") + &entry(4096, "local"))));
        let sizes: Vec<u64> = both.allocations.iter().map(|entry| entry.min_bytes).collect();
        assert_eq!(sizes, [4096, 8192]);
    }
}
