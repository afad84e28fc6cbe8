//! Damaged files give fewer names or wrong ones, and nothing else.

use crate::program::{Folder, Said};
use gondwana_analysis::{Layouts, Names};
use gondwana_recording::ImageRecord;
use gondwana_symbols::{File, Symbols};
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A program that was run, and its file.
struct Whole {
    folder: Folder,
    bytes: Vec<u8>,
    said: Said,
    /// Where something is to be damaged: the sections with the names.
    sections: Vec<std::ops::Range<usize>>,
}

fn whole(source: &str, options: &str) -> Whole {
    let folder = Folder::new();
    let program = folder.compile(source, "program", options);
    let said = Said::by(&program);
    let bytes = std::fs::read(program).unwrap();
    let sections = sections(&bytes);
    assert!(sections.len() > 4);
    Whole { folder, bytes, said, sections }
}

fn sections(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    use object::{Object, ObjectSection};
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(bytes).unwrap();
    let named = |section: object::read::elf::ElfSection64<'_, '_, object::Endianness>| {
        let name = section.name().unwrap();
        let (start, length) = section.file_range()?;
        let is_meant = name.starts_with(".debug") || [".symtab", ".strtab", ".dynsym"].contains(&name);
        let at = |offset: u64| usize::try_from(offset).unwrap();
        (is_meant && length > 0).then_some(at(start)..at(start + length))
    };
    file.sections().filter_map(named).collect()
}

/// Asks everything.
fn ask(path: PathBuf, said: &Said) {
    let mut image = said.images[0].clone();
    image.path = path.to_str().unwrap().to_owned();
    image.build_id = File::open(&path).map(|file| file.build_id().to_vec()).unwrap_or_default();
    let (names, _) = Symbols::open(&[ImageRecord { ..image }]);
    let mut layouts = Layouts::default();
    for (_, address, rest) in &said.facts {
        names.code(address - 1);
        if let Some(variable) = names.variable(*address) {
            names.field(&variable, address.saturating_sub(variable.start));
            names.layout(&variable, &mut layouts);
        }
        names.pointer(*address);
        names.target_field(*address, 12345);
        names.target_layout(*address, &mut layouts);
        names.has_variable(&rest[0], "");
    }
    names.has_site(&"main+0x4".parse().unwrap(), "");
    names.has_site(&"shapes.c:100".parse().unwrap(), "");
}

fn check(
    whole: &Whole,
    changes: &[(prop::sample::Index, prop::sample::Index, u8)],
    cut: Option<prop::sample::Index>,
) {
    let mut bytes = whole.bytes.clone();
    for (section, place, value) in changes {
        let section = section.get(&whole.sections);
        bytes[section.start + place.index(section.len())] = *value;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len()));
    }
    let path = whole.folder.join("damaged");
    std::fs::write(&path, &bytes).unwrap();
    ask(path, &whole.said);
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, prop::sample::Index, u8)>> {
    prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index, u8)>(), 1..40)
}

#[test]
fn functions_in_functions_without_end_are_not_followed() {
    let folder = Folder::new();
    for depth in [490, 200_000] {
        let options = format!("-shared -nostdlib -Wa,--defsym,DEPTH={depth}");
        let library = folder.compile("deep.s", &format!("lib{depth}.so"), &options);
        let file = File::open(&library).unwrap();
        let deep = file.code_of(&"deep".parse().unwrap()).unwrap().remove(0);
        let build_id = file.build_id().to_vec();
        let path = library.to_str().unwrap().to_owned();
        let (names, _) = Symbols::open(&[ImageRecord { path, base: 0, start: 0, end: 1 << 20, build_id }]);
        assert_eq!(names.code(deep.start)[0].function, "deep");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn damaged_c_does_no_harm(changes in changes(), cut in prop::option::weighted(0.1, any::<prop::sample::Index>())) {
        static WHOLE: OnceLock<Whole> = OnceLock::new();
        check(WHOLE.get_or_init(|| whole("shapes.c", "-O2 -g")), &changes, cut);
    }

    #[test]
    fn damaged_cpp_does_no_harm(changes in changes()) {
        static WHOLE: OnceLock<Whole> = OnceLock::new();
        check(WHOLE.get_or_init(|| whole("shapes.cc", "-g -gdwarf-4 -fdebug-types-section")), &changes, None);
    }

    #[test]
    fn damaged_compressed_sections_do_no_harm(changes in changes()) {
        static WHOLE: OnceLock<Whole> = OnceLock::new();
        check(WHOLE.get_or_init(|| whole("shapes.c", "-g -gz")), &changes, None);
    }
}
