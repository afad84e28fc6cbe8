//! Which of several things are measured.

use gondwana_console::failure::Failure;
use gondwana_launcher::run::options::Fabric;

/// Those whose names begin like one of `only`, or all of them.
pub(crate) fn choose<T>(
    all: Vec<T>,
    only: &[String],
    name: impl Fn(&T) -> &'static str,
) -> Result<Vec<T>, Failure> {
    if let Some(unknown) = only.iter().find(|only| !all.iter().any(|one| name(one).starts_with(*only))) {
        let names: Vec<_> = all.iter().map(name).collect();
        return Err(Failure::usage(format!(
            "no figure begins with {unknown}; there are {}",
            names.join(", ")
        )));
    }
    let wanted = |one: &T| only.is_empty() || only.iter().any(|only| name(one).starts_with(only.as_str()));
    Ok(all.into_iter().filter(wanted).collect())
}

/// The fabrics that are measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Fabrics {
    /// Measure only this fabric; both if it is not given
    #[arg(long, value_enum)]
    fabric: Option<Fabric>,
}

impl Fabrics {
    /// In the order of the table.
    pub(crate) fn chosen(&self) -> Vec<Fabric> {
        self.fabric.map_or_else(|| vec![Fabric::Shm, Fabric::Tcp], |fabric| vec![fabric])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;

    #[test]
    fn figures_are_chosen_by_the_beginnings_of_their_names() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
            choose(figures::all(Fabric::Shm), &only, |figure| figure.name)
                .map(|figures| figures.iter().map(|f| f.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["barrier"]).unwrap(), ["barrier"]);
        assert_eq!(names(&["release"]).unwrap(), ["release-bytes", "release-words", "release-doubles"]);
        assert_eq!(names(&[]).unwrap().len(), figures::all(Fabric::Shm).len());
        assert!(names(&["barrier", "speed"]).unwrap_err().message.contains("no figure begins with speed"));
    }
}
