//! The machines that come with Gondwana: the files of the folder `machines`.

/// Reads the files when this is compiled.
macro_rules! machines {
    ($($name:literal)*) => {
        /// Names and texts.
        const MACHINES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../machines/", $name, ".toml")))),*];
    };
}

machines! {
    "aviion-3x4"
    "cxl-2026"
    "e6000-16"
    "numaq"
    "olifant-1x4"
    "olifant-2x2"
    "olifant-2x4"
    "olifant-4x1"
    "olifant-4x4"
    "origin2000"
    "wildfire-2x8"
    "wildfire-4x28"
}

/// The names, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, _)| *name)
}

/// The text of a machine.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    MACHINES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Description, Machine};

    #[test]
    fn each_has_its_name_and_can_be_built() {
        for name in names() {
            let description =
                Description::parse(find(name).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(description.name, name);
            let machine = Machine::new(&description);
            assert_eq!(machine.processors() as u64, description.nodes * description.processors);
        }
        assert!(names().is_sorted());
    }
}
