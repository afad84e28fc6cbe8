//! Variables, parts of them, pointers and code of C and C++.

use crate::program::{Folder, Said};
use gondwana_analysis::{Layouts, Names};
use gondwana_plan::CodeLocation;
use gondwana_symbols::File;
use std::path::Path;

/// Compares everything that a program says with the names that are found.
fn check(source: &str, options: &str) {
    let folder = Folder::new();
    let program = folder.compile(source, "program", options);
    let said = Said::by(&program);
    let (names, notes) = said.open();
    assert_eq!(notes, [] as [String; 0], "{options}");
    check_data(&said, &names, options);
    check_code(&said, &names, source, options);
    check_round_trip(&said, &names, options);
}

fn check_data(said: &Said, names: &impl Names, options: &str) {
    let mut layouts = Layouts::default();
    for (address, rest) in said.of_kind("part") {
        let variable = names.variable(address).unwrap_or_else(|| panic!("{options}: no {rest:?}"));
        let field = names.field(&variable, address - variable.start);
        assert_eq!(format!("{}{field}", variable.name), rest[0], "{options}");
        let has_parts = names.layout(&variable, &mut layouts) != Layouts::PLAIN;
        assert!(has_parts || field.is_empty(), "{options}: {rest:?}");
    }
    for (address, rest) in said.of_kind("pointer") {
        let bytes = rest[1].parse().unwrap();
        assert_eq!(names.pointer(address), Some((rest[0].clone(), bytes)), "{options}");
        assert_eq!(names.pointer(address + 1), None, "{options}: {rest:?}");
    }
    for (address, rest) in said.of_kind("target") {
        let offset = rest[1].parse().unwrap();
        assert_eq!(names.target_field(address, offset), rest[0], "{options}");
        let has_parts = names.target_layout(address, &mut layouts) != Layouts::PLAIN;
        assert_eq!(has_parts, !rest[0].is_empty(), "{options}: {rest:?}");
    }
}

fn check_code(said: &Said, names: &impl Names, source: &str, options: &str) {
    for (address, rest) in said.of_kind("code") {
        let places = names.code(address - 1);
        let place = &places[0];
        assert!(
            place.function == rest[0] || place.function.starts_with(&format!("{}.", rest[0])),
            "{options}: {place:?} for {rest:?}"
        );
        assert!(place.file.ends_with(&format!("tests/programs/{source}")), "{options}: {place:?}");
        assert_eq!(place.line.to_string(), rest[1], "{options}");
        assert_eq!(place.library, "");
        if rest[0] == "inner" {
            assert_eq!(places.len(), 2, "{options}");
            assert!(places[1].function.starts_with("outer") || places[1].function == "main", "{options}");
        }
    }
}

/// What has a name is found again by that name.
fn check_round_trip(said: &Said, names: &impl Names, options: &str) {
    let image = &said.images[0];
    let file = File::open(Path::new(&image.path)).unwrap();
    for (address, rest) in said.of_kind("part") {
        let variable = names.variable(address).unwrap();
        let start = variable.start - image.base;
        let found = file.variable(&variable.name);
        assert_eq!(found, Ok(start..start + variable.bytes), "{options}: {rest:?}");
        assert!(names.has_variable(&variable.name, "") && !names.has_variable(&variable.name, "libc.so.6"));
    }
    for (address, rest) in said.of_kind("code") {
        let places = names.code(address - 1);
        let (call, library) = names.call(address).unwrap();
        assert_eq!((call.to_string().parse().as_ref(), &library[..]), (Ok(&call), ""));
        let CodeLocation::Call(function, offset) = &call else { panic!("{call}") };
        let beside = CodeLocation::Call(function.clone(), offset - 1);
        let refused = file.code_of(&beside).unwrap_err();
        assert!(refused.starts_with(&format!("there is no call before {beside} in ")), "{refused}");
        let line: CodeLocation = format!("{}:{}", places[0].file, places[0].line).parse().unwrap();
        for site in [call, line] {
            assert!(names.has_site(&site, ""));
            let found = file.code_of(&site).unwrap();
            let at = address - image.base - 1;
            assert!(found.iter().any(|range| range.contains(&at)), "{options}: {site} for {rest:?}");
        }
    }
    assert!(!names.has_variable("missing", "") && !names.has_site(&"missing+0x4".parse().unwrap(), ""));
}

#[test]
fn types_may_be_defined_in_another_file() {
    let folder = Folder::new();
    let grid = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/opaque_grid.c");
    for options in ["-g", "-g -gdwarf-4 -fdebug-types-section", "-g -O2 -flto"] {
        let said = Said::by(&folder.compile("opaque.c", "program", &format!("{grid} {options}")));
        check_data(&said, &said.open().0, options);
    }
}

#[test]
fn names_in_c_are_those_of_the_source() {
    for options in [
        "-g",
        "-O2 -g",
        "-O2 -g -no-pie",
        "-O2 -g -gdwarf-4",
        "-O1 -g -gdwarf-4 -fdebug-types-section",
        "-O2 -g -fdebug-types-section",
        "-O2 -g -gz",
        "-g -gz=zlib-gnu",
        "-O2 -g -flto",
        "-O2 -g -gstrict-dwarf -gdwarf-3",
    ] {
        check("shapes.c", options);
    }
}

#[test]
fn names_in_cpp_are_those_of_the_source() {
    for options in
        ["-g", "-O2 -g", "-O2 -g -no-pie", "-O2 -g -gdwarf-4 -fdebug-types-section", "-O2 -g -flto -gz"]
    {
        check("shapes.cc", options);
    }
}
