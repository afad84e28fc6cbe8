//! The cost of placement on several nodes, relative to the kernel's default. Both are emulated.

use crate::guest::run;

#[test]
#[ignore = "measures"]
fn stripes_cost_little_more_than_the_kernels_own() {
    // A quarter of it has room on the smallest node, wherever the kernel has put what it was started with.
    let Some(ran) = run("/tests/placement_cost 192") else { return };
    let text = ran.succeeded();
    println!("{text}");
    let ratio = |stride: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(stride)).unwrap();
        line.trim().strip_suffix(" x").unwrap().parse::<f64>().unwrap()
    };
    assert!(text.contains(" on 4 nodes: "), "{text}");
    assert!(ratio("striped:1 ") <= 1.2 && ratio("striped:16 ") <= 1.2, "{text}");
}

#[test]
#[ignore = "measures"]
fn a_parent_costs_programs_little_at_their_start() {
    // Memory of the one is bound to a node, so it gets a parent; of the other it is only preferred.
    let script = "time() {
            before=$(cut -d ' ' -f 1 /proc/uptime)
            for round in 1 2 3 4 5 6 7 8 9 10; do gondwana exec --memory local --rset $1 -- true || exit; done
            awk -v before=$before '{ print $1 - before }' /proc/uptime
        }
        for round in 1 2 3 4 5 6 7; do time node:0; time 'proc:0,2|mem:0-3'; done";
    let Some(ran) = run(script) else { return };
    let text = ran.succeeded();
    let seconds: Vec<f64> = text.lines().map(|line| line.parse().unwrap()).collect();
    let mut ratios: Vec<f64> = seconds.chunks(2).map(|round| round[0] / round[1]).collect();
    ratios.sort_by(f64::total_cmp);
    println!("with a parent {:.2} x: {seconds:?} s for ten starts", ratios[3]);
    assert!(ratios.len() == 7 && ratios[3] < 1.5, "{ratios:?}");
}
