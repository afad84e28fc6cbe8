//! Libraries, stripped files, files that are elsewhere, changed or gone.

use crate::program::{Folder, Said};
use gondwana_analysis::Names;

/// A program with a library, and what it says.
fn with_library(folder: &Folder) -> Said {
    folder.compile("library.c", "libown.so", "-g -shared -fPIC");
    let program = folder.compile("uses.c", "program", "-g -L. -lown");
    Said::by(&program)
}

#[test]
fn libraries_have_names_of_their_own() {
    let folder = Folder::new();
    let said = with_library(&folder);
    let (names, notes) = said.open();
    assert_eq!(notes, [] as [String; 0]);
    for (address, rest) in said.of_kind("part") {
        let variable = names.variable(address).unwrap();
        let field = names.field(&variable, address - variable.start);
        assert_eq!(format!("{}{field}", variable.name), rest[0]);
        assert_eq!(variable.library, "libown.so");
        assert!(names.has_variable(&variable.name, "libown.so") && !names.has_variable(&variable.name, ""));
    }
    let (address, rest) = said.of_kind("code").next().unwrap();
    let code = names.code(address - 1).remove(0);
    assert_eq!((code.function, code.library), (rest[0].clone(), "libown.so".to_owned()));
}

#[test]
fn stripped_programs_have_the_names_that_are_left() {
    let folder = Folder::new();
    let program = folder.compile("shapes.c", "program", "-O2 -g -rdynamic");
    folder.call("strip", &["program"]);
    let said = Said::by(&program);
    let (names, notes) = said.open();
    assert!(matches!(&notes[..], [note] if note.contains("was stripped")), "{notes:?}");
    let place = |function: &str| said.of_kind("code").find(|(_, rest)| rest[0] == function).unwrap().0;
    let outer = &names.code(place("inner") - 1)[0];
    assert!(outer.function == "outer" && outer.offset > 0 && outer.line == 0, "{outer:?}");
    // A function of its own has lost its name: what is left is the address in the file.
    let address = place("work") - 1;
    let work = &names.code(address)[0];
    assert_eq!((&work.function[..], work.offset), ("", address - said.images[0].base));
    let part = |name: &str| said.of_kind("part").find(|(_, rest)| rest[0] == name).unwrap().0;
    let plain = names.variable(part("plain")).unwrap();
    assert_eq!((&plain.name[..], plain.bytes), ("plain", 4));
    let cube = names.variable(part("cube[2][3][4]")).unwrap();
    assert_eq!(names.field(&cube, 8), "");
    assert_eq!(names.variable(part("counters[7]")), None);
    assert_eq!(names.pointer(part("rows[3]")), None);
}

#[test]
fn programs_without_debugging_information_have_functions_and_variables() {
    let folder = Folder::new();
    let said = Said::by(&folder.compile("shapes.c", "program", "-O1"));
    let (names, notes) = said.open();
    assert!(matches!(&notes[..], [note] if note.contains("no debugging information")), "{notes:?}");
    for (address, rest) in said.of_kind("part") {
        let variable = names.variable(address).unwrap();
        if !rest[0].contains("::") {
            assert!(rest[0].starts_with(&variable.name), "{variable:?} {rest:?}");
        }
        assert!(names.has_variable(&variable.name, "") && names.field(&variable, 0).is_empty());
    }
    let (address, rest) = said.of_kind("code").find(|(_, rest)| rest[0] == "main").unwrap();
    assert_eq!(names.code(address - 1)[0].function, rest[0]);
}

#[test]
fn debugging_information_may_be_in_another_file() {
    for options in ["-g -Wl,--build-id", "-g -Wl,--build-id=none"] {
        let folder = Folder::new();
        let program = folder.compile("shapes.c", "program", options);
        folder.call("objcopy", &["--only-keep-debug", "program", "program.debug"]);
        folder.call("objcopy", &["--strip-all", "--add-gnu-debuglink=program.debug", "program"]);
        std::fs::create_dir(folder.join(".debug")).unwrap();
        for is_hidden in [false, true] {
            if is_hidden {
                std::fs::rename(folder.join("program.debug"), folder.join(".debug/program.debug")).unwrap();
            }
            let said = Said::by(&program);
            let (names, notes) = said.open();
            assert_eq!(notes, [] as [String; 0]);
            for (address, rest) in said.of_kind("part") {
                let variable = names.variable(address).unwrap();
                let field = names.field(&variable, address - variable.start);
                assert_eq!(format!("{}{field}", variable.name), rest[0]);
            }
            for (address, rest) in said.of_kind("code") {
                assert_eq!(names.code(address - 1)[0].line.to_string(), rest[1]);
            }
        }
        // The debugging information of another program is no help.
        std::fs::remove_file(folder.join(".debug/program.debug")).unwrap();
        folder.compile("uses.c", "program.debug", "-g -shared -fPIC");
        let (_, notes) = Said::by(&program).open();
        assert!(matches!(&notes[..], [note] if note.contains("was stripped")), "{notes:?}");
    }
}

#[test]
fn files_that_are_not_what_has_run_give_no_names() {
    let folder = Folder::new();
    let said = with_library(&folder);
    let part = said.of_kind("part").next().unwrap().0;
    let code = said.of_kind("code").next().unwrap().0 - 1;
    let nameless = |words: &str| {
        let (names, notes) = said.open();
        assert!(
            matches!(&notes[..], [note] if note.contains("libown.so") && note.contains(words)),
            "{notes:?}"
        );
        assert_eq!(names.variable(part), None);
        assert_eq!(names.pointer(part), None);
        let places = names.code(code);
        assert!(matches!(&places[..], [place] if place.library == "libown.so" && place.function.is_empty()));
        assert!(places[0].offset > 0 && places[0].offset < code);
    };
    folder.compile("library.c", "libown.so", "-g -O2 -shared -fPIC");
    nameless("has changed since");
    std::fs::write(folder.join("libown.so"), "no library").unwrap();
    nameless("cannot be read");
    std::fs::remove_file(folder.join("libown.so")).unwrap();
    nameless("is gone");
    folder.call("mkfifo", &["libown.so"]);
    nameless("no regular file");
}

#[test]
fn variables_that_cannot_be_told_apart_are_not_taken_for_each_other() {
    let folder = Folder::new();
    let source = "static int twice; int *NAME(void) { return &twice; }";
    for name in ["one", "two"] {
        std::fs::write(folder.join(format!("{name}.c")), source.replace("NAME", name)).unwrap();
    }
    std::fs::write(
        folder.join("main.c"),
        "int *one(void), *two(void); int main(void) { return one() == two(); }",
    )
    .unwrap();
    folder.call("gcc", &["-g", "-o", "program", "one.c", "two.c", "main.c"]);
    let error = gondwana_symbols::File::open(&folder.join("program")).unwrap().variable("twice").unwrap_err();
    assert!(error.contains("there are 2 variables twice"), "{error}");
}
