//! A report of some data areas.

use gondwana_analysis::Analysis;
use gondwana_console::failure::Failure;

/// Leaves only the areas with this name, or if there is none those with a name that contains it.
///
/// # Errors
/// If there is no such area.
pub fn keep(analysis: &mut Analysis, name: &str) -> Result<(), Failure> {
    let exact = analysis.areas.iter().any(|area| area.name == name);
    let is_meant = |known: &str| if exact { known == name } else { known.contains(name) };
    if !analysis.areas.iter().any(|area| is_meant(&area.name)) {
        let hottest: Vec<&str> = analysis.areas.iter().take(3).map(|area| &area.name[..]).collect();
        let known = match &hottest[..] {
            [] => "nothing crossed between the nodes".to_owned(),
            some => format!("the hottest are {}", some.join(", ")),
        };
        return Err(Failure::usage(format!("no data area has the name \"{name}\": {known}")));
    }
    let mut places = vec![];
    let mut kept = 0;
    for area in &analysis.areas {
        places.push(is_meant(&area.name).then_some(kept));
        kept += u32::from(is_meant(&area.name));
    }
    analysis.cells.retain_mut(|cell| match places.get(cell.area as usize) {
        Some(&Some(place)) => {
            cell.area = place;
            true
        }
        _ => false,
    });
    analysis.parts.retain_mut(|part| match places.get(part.area as usize) {
        Some(&Some(place)) => {
            part.area = place;
            true
        }
        _ => false,
    });
    analysis.areas.retain(|area| is_meant(&area.name));
    Ok(())
}
