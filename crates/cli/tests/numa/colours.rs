//! `gondwana exec --colours`: the page frames that a program gets, as the kernel shows them to root.

use crate::guest::run;

/// How many colours the pages of the guest have.
fn colours() -> Option<u64> {
    let ran = run("cd /sys/devices/system/cpu/cpu0/cache
        for index in index*; do
            grep -q 2 $index/level && ! grep -q Instruction $index/type && cat $index/size $index/ways_of_associativity
        done")?;
    let text = ran.output;
    let (size, ways) = text.trim_end().split_once('\n').unwrap();
    let size: u64 = size.strip_suffix('K').unwrap().parse().unwrap();
    Some(size * 1024 / ways.parse::<u64>().unwrap() / 4096)
}

/// How many pages of a block have the colour after that of the page before, and the command's messages.
fn coloured(options: &str, pages: u64) -> Option<(u64, String)> {
    let colours = colours()?;
    assert!(colours > 1, "{colours}");
    let ran =
        run(&format!("gondwana exec {options} --malloc '>=64K=node:1' -- witness frames {pages}")).unwrap();
    let errors = ran.errors.clone();
    let frames = ran.succeeded();
    let in_order = (0..)
        .zip(frames.lines())
        .filter(|(page, frame)| frame.parse::<u64>().unwrap() % colours == page % colours);
    Some((in_order.count() as u64, errors))
}

#[test]
fn root_gets_pages_in_the_order_of_their_colours_and_is_told_how_many() {
    for pages in [64, 256, 1000] {
        let Some((in_order, said)) = coloured("--report --colours", pages) else { return };
        let report = said.lines().last().unwrap();
        let counted = format!("; {in_order} of {pages} pages have the colour of their turn");
        assert!(report.ends_with(&counted), "{counted}: {said}");
        assert!(in_order > pages * 3 / 4, "{said}");
    }
}

#[test]
fn without_being_asked_pages_have_any_colour() {
    let Some((in_order, said)) = coloured("--report", 256) else { return };
    assert!(in_order < 256 * 3 / 4 && !said.contains("colour"), "{in_order}: {said}");
}

#[test]
fn a_user_without_privileges_is_refused_colours_with_the_reason() {
    let command = "gondwana exec --report --colours --malloc '>=64K=node:1' -- witness frames 64";
    let Some(ran) = run(&format!("su user -c \"{command}\"")) else { return };
    let errors = ran.errors.clone();
    assert_eq!(ran.succeeded(), "0\n".repeat(64));
    let reason = "gondwana: pages cannot be coloured: the kernel shows page frame numbers to holders of CAP_SYS_ADMIN only\n";
    assert_eq!(errors.matches(reason).count(), 1, "{errors}");
    assert!(errors.ends_with("; 0 of 64 pages have the colour of their turn\n"), "{errors}");
}
