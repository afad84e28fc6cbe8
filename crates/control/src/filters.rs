//! Filters of the command line, before a node runs.

use gondwana_monitor::{Area, BankConfiguration, Filter, FilterError, FilterText};

/// Checks filters before the addresses of the program's data are known.
///
/// # Errors
/// Of the first filter that cannot be set beside those before it.
pub fn check_filters(texts: &[FilterText]) -> Result<(), FilterError> {
    let mut configuration = BankConfiguration::default();
    for (index, text) in texts.iter().enumerate() {
        if matches!(text.area, Area::Range(..)) {
            configuration.set(text.filter)?;
            continue;
        }
        // Wherever it will be, it takes a counter at least.
        let somewhere = |text: &FilterText| Filter { start: 0, end: 1 << text.filter.unit, ..text.filter };
        BankConfiguration::default().set(somewhere(text))?;
        let is_same = |other: &&FilterText| {
            (text.area == other.area || [text.area, other.area].contains(&Area::All))
                && !matches!(other.area, Area::Range(..))
                && somewhere(text).overlaps(&somewhere(other))
        };
        if let Some(other) = texts[..index].iter().find(is_same) {
            return Err(FilterError::Same(other.area));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_checked_against_each_other() {
        let filters =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<FilterText>>();
        assert_eq!(
            check_filters(&filters(&["range=0x1000-0x2000", "range=0x2000-0x3000", "range=heap"])),
            Ok(())
        );
        let overlapping = check_filters(&filters(&["range=0x1000-0x3000", "range=0x2000-0x4000"]));
        assert_eq!(overlapping, Err(FilterError::Overlapping { start: 0x1000, end: 0x3000 }));
        let same = |one: &str, next: &str| check_filters(&filters(&[one, "range=0x1000-0x2000", next]));
        assert_eq!(same("range=heap", "range=heap,unit=2M"), Err(FilterError::Same(Area::Heap)));
        assert_eq!(same("range=data", "range=all"), Err(FilterError::Same(Area::Data)));
        assert_eq!(same("range=all", "range=heap"), Err(FilterError::Same(Area::All)));
        assert_eq!(same("range=heap", "range=data"), Ok(()));
        assert_eq!(same("range=heap,kinds=reads", "range=heap,kinds=diff"), Ok(()));
        let beyond = check_filters(&filters(&["range=heap,counter=600000"]));
        assert_eq!(beyond, Err(FilterError::Counters { first: 600_000, count: 1 }));
    }
}
