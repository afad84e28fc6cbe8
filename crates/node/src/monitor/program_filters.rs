//! The program's filters, which are set in the counter banks of all nodes.

use super::thresholds::{Callback, in_callback};
use crate::Node;
use gondwana_control::{BankAnswer, BankError, BankRequest, MOST_COUNTERS, Report};
use gondwana_locks::lock;
use gondwana_monitor::{Filter, FilterError, FilterId, Kinds, SecondaryId};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// The program's filters and secondary counters, by the numbers that they have in the whole run.
#[derive(Default)]
pub(super) struct ProgramFilters {
    /// Held only briefly; a thread that holds the configuration's lock, too, has taken that one first.
    filters: Mutex<BTreeMap<u8, Set>>,
    secondaries: Mutex<BTreeMap<u8, SecondaryId>>,
}

/// A filter in this node's counter bank.
#[derive(Clone, Copy)]
pub(super) struct Set {
    /// Its number in this bank.
    pub id: FilterId,
    /// The number of its counters.
    counters: u32,
    /// The node whose thread requested it.
    pub asker: u16,
    /// See [`BankRequest::Set`].
    pub token: Option<u64>,
}

impl ProgramFilters {
    fn filters(&self) -> MutexGuard<'_, BTreeMap<u8, Set>> {
        lock(&self.filters)
    }

    fn secondaries(&self) -> MutexGuard<'_, BTreeMap<u8, SecondaryId>> {
        lock(&self.secondaries)
    }

    fn filter(&self, number: u8) -> Result<Set, FilterError> {
        self.filters().get(&number).copied().ok_or(FilterError::NotSet)
    }

    fn secondary(&self, number: u8) -> Result<SecondaryId, FilterError> {
        self.secondaries().get(&number).copied().ok_or(FilterError::NotSet)
    }

    /// The program's filter with this number in the bank of this node, and its number in the run.
    pub(super) fn of_bank(&self, id: u8) -> Option<(u8, Set)> {
        self.filters().iter().find(|(_, set)| set.id.0 == id).map(|(&number, &set)| (number, set))
    }
}

/// Called by threads of the program.
impl Node {
    /// Sets a filter on all nodes and returns its number. When a counter of any node reaches the threshold, the
    /// callback runs on this node.
    ///
    /// # Errors
    /// If any node refuses the filter; then no node has it.
    pub fn set_filter(&'static self, filter: Filter, callback: Option<Callback>) -> Result<u8, BankError> {
        let threshold_callbacks = &self.monitor.threshold_callbacks;
        let token = callback.map(|callback| threshold_callbacks.register(callback));
        let answer = self.ask_banks(&BankRequest::Set { filter, token });
        if answer.is_err() {
            token.iter().for_each(|&token| threshold_callbacks.forget(token));
        }
        number(&answer?)
    }

    /// Removes a filter on all nodes. When this returns, the callback is not running on this node, unless the
    /// callback itself called this.
    ///
    /// # Errors
    /// If there is no such filter.
    pub fn remove_filter(&'static self, number: u8) -> Result<(), BankError> {
        let set = self.monitor.banks.filter(number)?;
        self.ask_banks(&BankRequest::Remove { filter: number })?;
        if set.token.is_some() && set.asker == self.me.0 && !in_callback() {
            self.monitor.threshold_callbacks.wait_for_callback();
        }
        Ok(())
    }

    /// The counters of a filter, of one node or summed over all.
    ///
    /// # Errors
    /// If there is no such filter, or no such node.
    pub fn filter_counters(&self, filter: u8, node: Option<u16>) -> Result<Vec<u64>, BankError> {
        let counters = self.monitor.banks.filter(filter)?.counters;
        let mut counted = Vec::with_capacity(counters as usize);
        for first in (0..counters).step_by(MOST_COUNTERS as usize) {
            let count = (counters - first).min(MOST_COUNTERS);
            counted.extend(self.ask_banks(&BankRequest::Read { filter, node, first, count })?);
        }
        Ok(counted)
    }

    /// Starts a secondary counter on all nodes and returns its number.
    ///
    /// # Errors
    /// If a filter is not set, or no secondary counter is free.
    pub fn shadow_filters(&self, filters: &[u8], kinds: Kinds) -> Result<u8, BankError> {
        number(&self.ask_banks(&BankRequest::Shadow { filters: filters.to_vec(), kinds })?)
    }

    /// The value of a secondary counter, of one node or summed over all.
    ///
    /// # Errors
    /// If there is no such counter, or no such node.
    pub fn secondary_counter(&self, secondary: u8, node: Option<u16>) -> Result<u64, BankError> {
        let answer = self.ask_banks(&BankRequest::Secondary { secondary, node })?;
        Ok(answer.first().copied().unwrap_or(0))
    }

    /// Stops a secondary counter on all nodes.
    ///
    /// # Errors
    /// If there is no such counter.
    pub fn unshadow(&self, secondary: u8) -> Result<(), BankError> {
        self.ask_banks(&BankRequest::Unshadow { secondary }).map(drop)
    }

    fn ask_banks(&self, request: &BankRequest) -> BankAnswer {
        self.monitor.bank_answers.ask(|| self.report(&Report::Bank(request.clone())))
    }
}

/// The number in an answer.
fn number(answer: &[u64]) -> Result<u8, BankError> {
    let number = answer.first().and_then(|&number| u8::try_from(number).ok());
    number.ok_or_else(|| BankError::Refused(libc::EPROTO, "the launcher has given no number".to_owned()))
}

/// Called on this node for any thread of the run.
impl Node {
    /// Carries out a request of a thread of `asker`. A new filter or secondary counter gets this number.
    pub(super) fn do_on_bank(&'static self, asker: u16, number: u8, request: &BankRequest) -> BankAnswer {
        let banks = &self.monitor.banks;
        match *request {
            BankRequest::Set { filter, token } => self.set_on_bank(asker, number, filter, token),
            BankRequest::Remove { filter } => {
                let set = banks.filter(filter)?;
                if let Some(token) = set.token {
                    self.listen_no_more(set.id, token);
                }
                self.with_configuration(|configuration| {
                    banks.filters().remove(&filter);
                    configuration.remove(set.id)
                })?;
                Ok(vec![])
            }
            BankRequest::Read { filter, first, count, .. } => {
                let id = banks.filter(filter)?.id;
                Ok(self.with_configuration(|configuration| {
                    self.count_one_sided_reads(configuration, |_| true);
                    let counters = configuration.counters(id)?;
                    Ok::<_, FilterError>(counters.skip(first as usize).take(count as usize).collect())
                })?)
            }
            BankRequest::Shadow { ref filters, kinds } => {
                let ids = filters.iter().map(|&filter| Ok(banks.filter(filter)?.id));
                let ids = ids.collect::<Result<Vec<FilterId>, FilterError>>()?;
                let id = self.with_configuration(|configuration| configuration.shadow(&ids, kinds))?;
                banks.secondaries().insert(number, id);
                Ok(vec![])
            }
            BankRequest::Secondary { secondary, .. } => {
                let id = banks.secondary(secondary)?;
                Ok(vec![self.with_configuration(|configuration| {
                    self.count_one_sided_reads(configuration, |_| true);
                    configuration.secondary(id)
                })?])
            }
            BankRequest::Unshadow { secondary } => {
                let id = banks.secondary(secondary)?;
                self.with_configuration(|configuration| configuration.unshadow(id))?;
                banks.secondaries().remove(&secondary);
                Ok(vec![])
            }
        }
    }

    fn set_on_bank(&'static self, asker: u16, number: u8, filter: Filter, token: Option<u64>) -> BankAnswer {
        let banks = &self.monitor.banks;
        let id = self.with_configuration(|configuration| {
            self.find_one_sided_reads(&filter);
            let id = configuration.set(filter)?;
            // While the configuration is locked: afterwards any thread may take events of the filter.
            let counters = u32::try_from(filter.counters()).expect("the bank has as many");
            banks.filters().insert(number, Set { id, counters, asker, token });
            Ok::<_, FilterError>(id)
        })?;
        let Some(token) = token else { return Ok(vec![]) };
        self.listen(id).map(|()| vec![]).map_err(|error| {
            // Removed again through the launcher, as on the other nodes.
            self.listen_no_more(id, token);
            BankError::Refused(libc::EAGAIN, format!("starting the thread that tells thresholds: {error}"))
        })
    }
}
