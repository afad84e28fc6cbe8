//! The configuration side of a counter bank: it sets filters and reads counters.

use crate::counter_bank::{CounterBank, Entry};
use crate::sizes::{COUNTERS, MOST_FILTERS, SECONDARIES};
use crate::{Filter, FilterError, Kinds};
use gondwana_page::to_usize;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A filter that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilterId(pub u8);

/// A secondary counter that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecondaryId(pub u8);

/// Sets filters and secondary counters of a [`CounterBank`], and reads its counters, while other threads count.
///
/// # Examples
/// ```
/// use gondwana_monitor::{BankConfiguration, Direction, Filter, Kind, Transaction};
///
/// let mut configuration = BankConfiguration::default();
/// // A counter for each of two pages.
/// let id = configuration.set(Filter::new(0x1000, 0x3000, 12))?;
/// let (kind, direction) = (Kind::Read, Direction::Out);
/// let read = Transaction { kind, direction, address: 0x2040, bytes: 4096, peer: 1, thread: None, code: 0 };
/// configuration.bank().count(&read);
/// assert_eq!(configuration.counters(id)?.collect::<Vec<_>>(), [0, 1]);
/// # Ok::<(), gondwana_monitor::FilterError>(())
/// ```
#[derive(Default)]
pub struct BankConfiguration {
    bank: Arc<CounterBank>,
    /// By ascending start.
    entries: Vec<Entry>,
    /// Secondary counters in use, a bit each.
    secondaries: u16,
    /// Filters of adaptive refinement that gave way to requested ones, with what they had counted.
    gone: Vec<(FilterId, Vec<u64>)>,
}

impl BankConfiguration {
    /// The counting side.
    #[must_use]
    pub fn bank(&self) -> &Arc<CounterBank> {
        &self.bank
    }

    /// Sets a filter; its counters begin at 0. Filters of adaptive refinement give way to it.
    ///
    /// # Errors
    /// If the filter is invalid, overlaps another one, or needs more counters than are free.
    pub fn set(&mut self, filter: Filter) -> Result<FilterId, FilterError> {
        filter.check()?;
        self.place(filter, false).or_else(|error| {
            if !self.entries.iter().any(|entry| entry.own) {
                return Err(error);
            }
            self.give_way();
            self.place(filter, false)
        })
    }

    /// Sets a filter of adaptive refinement, which never displaces another one.
    ///
    /// # Errors
    /// As for [`BankConfiguration::set`].
    pub(crate) fn set_own(&mut self, filter: Filter) -> Result<FilterId, FilterError> {
        filter.check()?;
        self.place(filter, true)
    }

    /// Removes all filters of adaptive refinement, and keeps what they have counted.
    fn give_way(&mut self) {
        let own: Vec<Entry> = self.entries.extract_if(.., |entry| entry.own).collect();
        self.bank.put_in_force(&self.entries);
        for entry in &own {
            let counted = self.counted(entry).collect();
            self.gone.push((FilterId(entry.number), counted));
        }
    }

    /// Removes a filter; returns its counters, with the last transaction included.
    pub(crate) fn take(&mut self, id: FilterId) -> Result<Vec<u64>, FilterError> {
        let entry = *self.entry(id)?;
        self.remove(id)?;
        Ok(self.counted(&entry).collect())
    }

    fn counted(&self, entry: &Entry) -> impl Iterator<Item = u64> + use<'_> {
        self.bank.read(entry.first, to_usize(entry.filter.counters()))
    }

    /// Takes the filters of adaptive refinement that have given way since the last call, with their counters.
    pub(crate) fn take_gone(&mut self) -> Vec<(FilterId, Vec<u64>)> {
        std::mem::take(&mut self.gone)
    }

    fn place(&mut self, filter: Filter, own: bool) -> Result<FilterId, FilterError> {
        if let Some(Entry { filter: other, .. }) =
            self.entries.iter().find(|entry| entry.filter.overlaps(&filter))
        {
            return Err(FilterError::Overlapping { start: other.start, end: other.end });
        }
        if self.entries.len() == MOST_FILTERS {
            return Err(FilterError::TooManyFilters(MOST_FILTERS));
        }
        let number = (0_u8..)
            .take(MOST_FILTERS)
            .find(|&number| self.entries.iter().all(|entry| entry.number != number))
            .ok_or(FilterError::TooManyFilters(MOST_FILTERS))?;
        let first = self.counters_for(&filter)?;
        self.bank.clear(first, to_usize(filter.counters()));
        let entry = Entry { filter, number, first, own, secondaries: [Kinds::NONE; SECONDARIES] };
        let place = self.entries.partition_point(|other| other.filter.start <= filter.start);
        self.entries.insert(place, entry);
        self.bank.put_in_force(&self.entries);
        Ok(FilterId(number))
    }

    /// The first of the counters that a new filter gets.
    fn counters_for(&self, filter: &Filter) -> Result<u32, FilterError> {
        let needed = filter.counters();
        let mut taken: Vec<(u64, u64)> = self
            .entries
            .iter()
            .map(|entry| (u64::from(entry.first), u64::from(entry.first) + entry.filter.counters()))
            .collect();
        taken.sort_unstable();
        taken.push((COUNTERS as u64, COUNTERS as u64));
        let mut free = 0;
        let gaps = taken.into_iter().map(|(start, end)| (std::mem::replace(&mut free, end), start));
        if let Some(first) = filter.first {
            let (start, end) = (u64::from(first), u64::from(first).saturating_add(needed));
            let fits = gaps.into_iter().any(|(from, to)| from <= start && end <= to);
            return fits.then_some(first).ok_or(FilterError::Counters { first, count: needed });
        }
        let gaps: Vec<(u64, u64)> = gaps.collect();
        match gaps.iter().find(|(from, to)| to - from >= needed) {
            Some(&(from, _)) => Ok(u32::try_from(from).expect("below COUNTERS")),
            None => {
                let free = gaps.iter().map(|(from, to)| to - from).max().unwrap_or(0);
                Err(FilterError::TooManyCounters { needed, free })
            }
        }
    }

    /// The number of counters that no requested filter uses.
    #[must_use]
    pub fn free_counters(&self) -> u64 {
        COUNTERS as u64 - self.asked().map(|filter| filter.counters()).sum::<u64>()
    }

    /// The filters that users have requested, by ascending start.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &Filter> {
        self.entries.iter().filter(|entry| !entry.own).map(|entry| &entry.filter)
    }

    /// True if adaptive refinement has set this filter.
    #[must_use]
    pub fn is_own(&self, id: FilterId) -> bool {
        self.entry(id).is_ok_and(|entry| entry.own)
    }

    fn entry(&self, id: FilterId) -> Result<&Entry, FilterError> {
        self.entries.iter().find(|entry| entry.number == id.0).ok_or(FilterError::NotSet)
    }

    /// Removes a filter.
    ///
    /// # Errors
    /// If it is not set.
    pub fn remove(&mut self, id: FilterId) -> Result<(), FilterError> {
        self.entry(id)?;
        self.entries.retain(|entry| entry.number != id.0);
        self.bank.put_in_force(&self.entries);
        Ok(())
    }

    /// The filters that are set, by ascending start.
    pub fn filters(&self) -> impl Iterator<Item = (FilterId, &Filter)> {
        self.entries.iter().map(|entry| (FilterId(entry.number), &entry.filter))
    }

    /// The counters of a filter, one for each unit.
    ///
    /// # Errors
    /// If the filter is not set.
    pub fn counters(&self, id: FilterId) -> Result<impl Iterator<Item = u64>, FilterError> {
        Ok(self.counted(self.entry(id)?))
    }

    /// Sets the counters of a filter to 0.
    ///
    /// # Errors
    /// If the filter is not set.
    pub fn clear(&self, id: FilterId) -> Result<(), FilterError> {
        let entry = self.entry(id)?;
        self.bank.clear(entry.first, to_usize(entry.filter.counters()));
        Ok(())
    }

    /// Starts a secondary counter, which counts what these filters count of these kinds.
    ///
    /// # Errors
    /// If a filter is not set, no kind is named, or all secondary counters are in use.
    pub fn shadow(&mut self, filters: &[FilterId], kinds: Kinds) -> Result<SecondaryId, FilterError> {
        if kinds.is_empty() {
            return Err(FilterError::NoKinds);
        }
        filters.iter().try_for_each(|&id| self.entry(id).map(drop))?;
        let (id, number) = (0_u8..)
            .zip(0..SECONDARIES)
            .find(|(_, number)| self.secondaries >> number & 1 == 0)
            .ok_or(FilterError::TooManySecondaries(SECONDARIES))?;
        self.secondaries |= 1 << number;
        self.bank.secondary(number).store(0, Ordering::Relaxed);
        for entry in self.entries.iter_mut().filter(|entry| filters.contains(&FilterId(entry.number))) {
            entry.secondaries[number] = kinds;
        }
        self.bank.put_in_force(&self.entries);
        Ok(SecondaryId(id))
    }

    fn number(&self, id: SecondaryId) -> Result<usize, FilterError> {
        let number = usize::from(id.0);
        (number < SECONDARIES && self.secondaries >> number & 1 != 0)
            .then_some(number)
            .ok_or(FilterError::NotSet)
    }

    /// The value of a secondary counter.
    ///
    /// # Errors
    /// If it is not in use.
    pub fn secondary(&self, id: SecondaryId) -> Result<u64, FilterError> {
        Ok(self.bank.secondary(self.number(id)?).load(Ordering::Relaxed))
    }

    /// Stops a secondary counter.
    ///
    /// # Errors
    /// If it is not in use.
    pub fn unshadow(&mut self, id: SecondaryId) -> Result<(), FilterError> {
        let number = self.number(id)?;
        self.secondaries &= !(1 << number);
        self.entries.iter_mut().for_each(|entry| entry.secondaries[number] = Kinds::NONE);
        self.bank.put_in_force(&self.entries);
        Ok(())
    }
}
