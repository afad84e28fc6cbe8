//! The machines that come with Gondwana: the files of the folder `machines`.

/// Names and texts.
const MACHINES: [(&str, &str); 12] = [
    ("aviion-3x4", include_str!("../../../machines/aviion-3x4.toml")),
    ("cxl-2026", include_str!("../../../machines/cxl-2026.toml")),
    ("e6000-16", include_str!("../../../machines/e6000-16.toml")),
    ("numaq", include_str!("../../../machines/numaq.toml")),
    ("olifant-1x4", include_str!("../../../machines/olifant-1x4.toml")),
    ("olifant-2x2", include_str!("../../../machines/olifant-2x2.toml")),
    ("olifant-2x4", include_str!("../../../machines/olifant-2x4.toml")),
    ("olifant-4x1", include_str!("../../../machines/olifant-4x1.toml")),
    ("olifant-4x4", include_str!("../../../machines/olifant-4x4.toml")),
    ("origin2000", include_str!("../../../machines/origin2000.toml")),
    ("wildfire-2x8", include_str!("../../../machines/wildfire-2x8.toml")),
    ("wildfire-4x28", include_str!("../../../machines/wildfire-4x28.toml")),
];

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
