//! The page of a run that the test records itself.

use crate::browser::{Ground, Page, folder};
use crate::common::folder::Folder;
use crate::common::whole::{LIMIT, run, whole};
use std::process::Command;

#[test]
fn a_recorded_program_is_shown_down_to_the_fields_of_its_data() {
    let place = Folder::new();
    place.compile("fields");
    let words = ["-n", "2", "--consistency", "rc", "--monitor=fields.gwr", "--", "./fields"];
    let ran = run(&mut whole().run(&place, &words), LIMIT);
    assert_eq!((&ran.output[..], &ran.errors[..]), ("4950\n", ""));
    let file = folder().join("recorded.html");
    let html = format!("--html={}", file.display());
    let ran = run(
        Command::new(&whole().gondwana).args(["report", "fields.gwr", &html]).current_dir(&*place),
        LIMIT,
    );
    assert!(ran.status.unwrap().success(), "{}", ran.errors);

    let Some(page) = Page::open(&file, Ground::Light) else { return };
    page.until("document.getElementById('picture')?.dataset.drawn > 0");
    assert_eq!(page.value("document.title"), "fields: what crosses between its nodes");
    assert!(page.text("#hottest").starts_with("Hottest: grid causes"), "{}", page.text("#hottest"));
    for (part, text) in [("#advice", "grid"), ("#traffic", "from"), ("#time", "node 0")] {
        assert!(page.text(part).contains(text), "{part}: {}", page.text(part));
    }
    let grid = "[...document.querySelectorAll('#area-table tbody tr')].find((row) => row.innerText.includes('grid')).dataset.area";
    let grid = page.value(grid).as_str().unwrap().to_owned();
    page.click(&format!("#area-table tr[data-area='{grid}']"));
    page.until(&format!("document.getElementById('picture').dataset.area === '{grid}'"));
    assert!(page.text("#chosen").contains("fields.c:"), "{}", page.text("#chosen"));

    // Somewhere under the pointer is the field that the other node reads, with the area and who has fetched it.
    let canvas = page.place("#canvas");
    let mut hints = vec![];
    // It is near the end.
    let is_told = (0..=300).rev().any(|step| {
        page.point(canvas.at(f64::from(step) / 300.0, 0.5));
        let hint = page.text("#hint");
        let told = ["grid[2][17].place[1]", " in grid", "node 1"].iter().all(|text| hint.contains(text));
        hints.push(hint);
        told
    });
    assert!(is_told, "{hints:#?}");
    page.screenshot("recorded");
    page.was_quiet();
}
