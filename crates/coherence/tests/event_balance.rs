//! What all nodes together tell a monitor adds up: whatever leaves one node comes to another. Random race-free programs on random
//! schedules, until nothing is under way.
//!
//! The equations hold for each page by itself, and with "a -> b" also for each pair of nodes:
//!
//! - Requests: each of them gets one answer (`csm`; `sc`: or several, if an owner keeps some of its pages for a while), or each of
//!   its pages does (`erc`). No page comes unasked.
//! - Pages: what a -> b is served is what b <- a gets, with contents or without. Under `csm`, an answer that brings nothing is from
//!   a node that has nothing to serve; so is one under `sc` if a policy has made the requester the page's manager.
//! - Diffs: each comes to its home once, and before that to each former home that passes it on. So what a -> b sends arrives, and
//!   as much as is sent is patched.
//! - Notices: the nodes that learn of a change are those that were told, whoever told them on the writer's behalf.
//! - Invalidations: who is told gives its copy up (`erc`: and nobody else; `sc`: so do the owner and the manager, untold).
//! - Homes that a policy moves: a -> b leaves what b <- a is given with contents.
//! - Exclusive use ends in as many pages as are shared, or leave where no other node had them. Among nodes that copy one-sided
//!   the home may find several readers at once.

use gondwana_coherence::{
    C11, C11Options, Counters, Csm, CsmOptions, Erc, ErcOptions, Event, Layout, PROTOCOLS, Sc, ScOptions,
};
use gondwana_testbed::programs::{Rng, expose_anywhere, place_anywhere, promote_anywhere, race_free};
use gondwana_testbed::setup::{Op, Setup, common_after};
use gondwana_testbed::world::{Action, Machine, World};
use std::collections::BTreeMap;
use std::num::TryFromIntError;
use std::time::Duration;

/// Programs that each protocol runs.
const PROGRAMS: u64 = 1500;
/// Phases between barriers of a program, and steps of each thread in one.
const PHASES: usize = 3;
const STEPS: usize = 20;

/// Page, node that tells, peer.
type Key = (u32, u16, u16);

/// How many times something has happened to each page, and with how many bytes.
type Sums = BTreeMap<Key, (u64, u64)>;

/// What one run has told, and counted.
struct Told {
    events: Vec<(u16, Event, u32, u32, u16)>,
    counters: Vec<Counters>,
    page_size: u64,
}

impl Told {
    /// Sums events page by page. `meant` gives the bytes of each page of an event that is meant.
    fn pages(&self, meant: impl Fn(Event) -> Option<u64>) -> Sums {
        let mut sums = Sums::new();
        for &(node, event, first, count, peer) in &self.events {
            let Some(bytes) = meant(event) else { continue };
            for page in first..first + count {
                let sum = sums.entry((page, node, peer)).or_default();
                *sum = (sum.0 + 1, sum.1 + bytes);
            }
        }
        sums
    }

    /// [`Told::pages`] of events without bytes.
    fn of(&self, meant: impl Fn(Event) -> bool) -> Sums {
        self.pages(|event| meant(event).then_some(0))
    }

    /// The same, with each event counted once at its first page.
    fn events(&self, meant: impl Fn(Event) -> bool) -> BTreeMap<(u32, u16), u64> {
        let mut sums = BTreeMap::new();
        for &(node, event, first, _, _) in &self.events {
            if meant(event) {
                *sums.entry((first, node)).or_default() += 1;
            }
        }
        sums
    }

    /// A counter of all nodes.
    fn counter(&self, counter: fn(&Counters) -> u64) -> u64 {
        self.counters.iter().map(counter).sum()
    }
}

/// The same sums as the other side tells them.
fn flipped(sums: &Sums) -> Sums {
    sums.iter().map(|(&(page, node, peer), &sum)| ((page, peer, node), sum)).collect()
}

fn added(one: &Sums, other: &Sums) -> Sums {
    let mut sums = one.clone();
    for (&key, &(pages, bytes)) in other {
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + pages, sum.1 + bytes);
    }
    sums
}

/// The sums of all keys that agree in what `part` gives of them.
fn by<K: Ord>(sums: &Sums, part: impl Fn(Key) -> K) -> BTreeMap<K, u64> {
    let mut merged = BTreeMap::new();
    for (&key, &(pages, _)) in sums {
        *merged.entry(part(key)).or_default() += pages;
    }
    merged
}

fn total(sums: &Sums) -> (u64, u64) {
    sums.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// The first key of which there is more in `less` than in `more`.
fn excess<K: Ord + Copy, V: Ord + Default + Copy>(
    less: &BTreeMap<K, V>,
    more: &BTreeMap<K, V>,
) -> Option<(K, V)> {
    let found = less.iter().find(|&(key, &sum)| sum > more.get(key).copied().unwrap_or_default());
    found.map(|(&key, &sum)| (key, sum))
}

fn is_diff_sent(event: Event) -> Option<u64> {
    if let Event::DiffSent { bytes } = event { Some(u64::from(bytes)) } else { None }
}

fn is_diff_received(event: Event) -> Option<u64> {
    if let Event::DiffReceived { bytes } = event { Some(u64::from(bytes)) } else { None }
}

/// The equations of all protocols.
fn check(told: &Told) {
    let asked = told.of(|event| event == Event::Asked);
    let answered = told.of(|event| event == Event::Answered);
    let arrived = told.of(|event| matches!(event, Event::Arrived { .. }));
    let served = flipped(&told.of(|event| matches!(event, Event::Served { .. })));
    let brought = added(&arrived, &answered);
    assert_eq!(excess(&arrived, &served), None, "pages arrive that nobody has served");
    assert_eq!(excess(&served, &brought), None, "pages are served that never arrive");
    let here = |(page, node, _)| (page, node);
    assert_eq!(excess(&by(&brought, here), &by(&asked, here)), None, "an answer to no request");
    for &(_, event, _, count, _) in &told.events {
        if let Event::Arrived { bytes } | Event::Given { bytes } = event {
            assert!(bytes == 0 || bytes == u64::from(count) * told.page_size, "{event:?} of {count}");
        }
    }

    let sent = told.pages(is_diff_sent);
    let received = flipped(&told.pages(is_diff_received));
    assert_eq!(excess(&sent, &received), None, "a diff does not arrive");
    let (diffs, bytes) = total(&sent);
    assert_eq!((diffs, bytes), (told.counter(|node| node.patches), told.counter(|node| node.diff_bytes)));
    assert!(total(&received).0 - diffs <= told.counter(|node| node.diffs_forwarded), "a diff comes twice");
    if told.counter(|node| node.diffs_forwarded) == 0 {
        assert_eq!(sent, received, "a diff comes from nowhere");
    }

    let there = |(page, _, peer)| (page, peer);
    let sent = told.of(|event| event == Event::NoticeSent);
    let received = told.of(|event| event == Event::NoticeReceived);
    // Posted ones are received at the next acquire, which need not come.
    assert_eq!(excess(&by(&received, here), &by(&sent, there)), None, "a notice from nowhere");
    let sent = told.of(|event| event == Event::InvalidationSent);
    let given_up = told.of(|event| event == Event::Invalidated);
    assert_eq!(excess(&by(&sent, there), &by(&given_up, here)), None, "invalidations");

    let placed = told.of(|event| matches!(event, Event::Left { written: false, .. }));
    let given = told.of(|event| matches!(event, Event::Given { bytes: 1.. }));
    assert_eq!(flipped(&placed), given, "homes that a policy decides");
    let alone = told.of(|event| matches!(event, Event::Shared | Event::Left { exclusive: true, .. }));
    assert!(total(&alone).0 >= told.counter(|node| node.exclusive_left), "exclusive use ends unseen");
    assert_eq!(total(&told.of(|event| event == Event::Overtaken)).0, told.counter(|node| node.refetches));
}

/// Each request gets one answer.
/// Requests by first page and node, and answers.
fn requests_and_answers(told: &Told) -> [BTreeMap<(u32, u16), u64>; 2] {
    let asked = told.events(|event| event == Event::Asked);
    let answers = told.events(|event| matches!(event, Event::Arrived { .. } | Event::Answered));
    [asked, answers]
}

fn check_csm(told: &Told, one_sided: bool) {
    let [asked, answers] = requests_and_answers(told);
    assert_eq!(asked, answers);
    let arrived = told.of(|event| matches!(event, Event::Arrived { .. }));
    let served = told.of(|event| matches!(event, Event::Served { .. }));
    assert_eq!(arrived, flipped(&served));
    let with_contents =
        told.of(|event| matches!(event, Event::Arrived { bytes: 1.. } | Event::Given { bytes: 1.. }));
    assert_eq!(
        total(&with_contents).0,
        told.counter(|node| node.page_transfers - node.one_sided_reads + node.refetches)
    );
    let count = |event| total(&told.of(|it| it == event)).0;
    assert_eq!(count(Event::NoticeSent), told.counter(|node| node.notices_sent));
    assert_eq!(count(Event::Invalidated), told.counter(|node| node.invalidations));
    assert_eq!(
        told.events(|event| event == Event::Asked).values().sum::<u64>(),
        told.counter(|it| it.fetches)
    );
    if !one_sided {
        check_exclusive(told);
    }
}

/// Exclusive use ends with one reader or writer.
fn check_exclusive(told: &Told) {
    let ended = told.of(|event| matches!(event, Event::Shared | Event::Left { exclusive: true, .. }));
    assert_eq!(total(&ended).0, told.counter(|node| node.exclusive_left));
}

/// Protocols without diffs, in which a page is one node's to write.
fn check_single_writer(told: &Told) {
    check_exclusive(told);
    let lost = told.of(|event| matches!(event, Event::Invalidated | Event::Left { .. }));
    assert_eq!(total(&lost).0, told.counter(|node| node.invalidations));
    let arrived = told.of(|event| matches!(event, Event::Arrived { bytes: 1.. }));
    assert_eq!(total(&arrived).0, told.counter(|node| node.page_transfers));
    // A page leaves with an answer to the node that will write it.
    let left = told.of(|event| matches!(event, Event::Left { .. }));
    assert_eq!(excess(&left, &told.of(|event| event == Event::Served { write: true })), None);
    assert_eq!(total(&told.pages(is_diff_sent)), (0, 0));
}

fn check_sc(told: &Told, placed: bool) {
    let [asked, answers] = requests_and_answers(told);
    assert_eq!(excess(&asked, &answers), None);
    check_single_writer(told);
    let here = |(page, node, _)| (page, node);
    if !placed {
        let came = told.of(|event| matches!(event, Event::Arrived { .. } | Event::Answered));
        let served = told.of(|event| matches!(event, Event::Served { .. }));
        assert_eq!(came, flipped(&served));
        // Whoever has what it asks for only becomes the owner. Others become it by themselves.
        let answered = told.of(|event| event == Event::Answered);
        let upgraded = told.of(|event| event == Event::Upgraded);
        assert_eq!(excess(&by(&answered, here), &by(&upgraded, here)), None);
    }
}

fn check_erc(told: &Told) {
    check_single_writer(told);
    let here = |(page, node, _)| (page, node);
    let asked = told.of(|event| event == Event::Asked);
    let came = told.of(|event| matches!(event, Event::Arrived { .. } | Event::Answered));
    assert_eq!(by(&asked, here), by(&came, here));
    assert_eq!(came, flipped(&told.of(|event| matches!(event, Event::Served { .. }))));
    // Whoever has what it asks for only becomes the owner. Owners that write say so as well, without asking.
    let answered = told.of(|event| event == Event::Answered);
    let mut upgraded = told.of(|event| event == Event::Upgraded);
    upgraded.retain(|&(_, node, peer), _| node != peer);
    assert_eq!(answered, upgraded);
    let sent = told.of(|event| event == Event::InvalidationSent);
    let given_up = told.of(|event| event == Event::Invalidated);
    assert_eq!(given_up, flipped(&sent));
    assert_eq!(total(&sent).0, told.counter(|node| node.notices_sent));
}

/// Runs the program until nothing is under way.
fn run<P: Machine>(setup: &Setup, seed: u64, machine: impl Fn(Layout) -> P) -> Told {
    let mut world = World::new(setup, machine);
    for node in &mut world.nodes {
        node.memory.observed = true;
    }
    let mut rng = Rng(!seed);
    let mut slow = (0, 0);
    loop {
        let mut actions = world.actions(setup);
        if actions.is_empty() {
            break;
        }
        // One channel is slow for a while, so that messages of different pairs overtake each other by far.
        if rng.chance(3) {
            slow = (rng.below(setup.nodes), rng.below(setup.nodes));
        }
        let (from, to) = slow;
        if actions.len() > 1 {
            actions.retain(|&action| action != Action::Deliver { from, to });
        }
        world.apply(setup, actions[rng.below(actions.len())]);
    }
    assert_eq!(world.failure, None);
    assert!(world.finished(setup), "stuck: {:?}", world.threads);
    let told = world.observed.iter().map(|(node, it)| (node.0, it.event, it.first.0, it.count, it.peer.0));
    Told {
        events: told.collect(),
        counters: world.nodes.iter().map(|node| node.machine.counters()).collect(),
        page_size: setup.page_size as u64,
    }
}

/// A number below `limit`, of a type that can hold it.
fn below<N: TryFrom<usize, Error = TryFromIntError>>(rng: &mut Rng, limit: usize) -> N {
    rng.below(limit).try_into().unwrap()
}

/// A cluster and its program.
fn setup(seed: u64) -> Setup {
    let mut rng = Rng(seed);
    let nodes = 2 + rng.below(3);
    let threads = nodes * (1 + rng.below(2));
    let mut setup = Setup {
        nodes,
        pages: 1 + rng.below(6),
        page_size: 8,
        threads: (0..threads).map(|thread| (thread % nodes, vec![])).collect(),
        locks: rng.below(4),
        lazy: rng.chance(50),
        ahead: below(&mut rng, 4),
        stride: below(&mut rng, 3),
        manager: rng.chance(50).then_some(0),
        placed: vec![],
        given: rng.chance(50),
    };
    if is_placed(seed) {
        setup.placed = (0..setup.pages).map(|_| Some(below(&mut rng, nodes))).collect();
    }
    race_free(&mut setup, PHASES, STEPS, seed);
    if is_placed(seed) {
        place_anywhere(&mut setup, 4, seed);
    }
    expose_anywhere(&mut setup, rng.below(4), seed);
    if is_placed(seed) {
        give_new_pages(&mut setup, &mut rng);
    }
    setup
}

/// Has one thread write two pages that are new, and then their home go elsewhere while nobody uses them.
fn give_new_pages(setup: &mut Setup, rng: &mut Rng) {
    let (page, writer) = (setup.pages, rng.below(setup.threads.len()));
    let addresses = [page * setup.page_size, (page + 1) * setup.page_size];
    let writes = addresses.map(|address| Op::Write(address, 1));
    setup.pages += 2;
    let home = Some(below(rng, setup.nodes));
    let place = Op::Place { first: u32::try_from(page).unwrap(), count: 2, home, used: false };
    for (thread, (_, program)) in setup.threads.iter_mut().enumerate() {
        match thread == writer {
            true => program.extend(writes.into_iter().chain([Op::Barrier, place, Op::Barrier])),
            false => program.extend([Op::Barrier, Op::Barrier]),
        }
        program.extend(addresses.map(Op::Read));
    }
}

/// True if a policy decides homes while the program runs.
fn is_placed(seed: u64) -> bool {
    seed.is_multiple_of(3)
}

/// Runs one program on one protocol of [`PROTOCOLS`], and checks its equations.
fn check_run(protocol: &str, seed: u64) -> Told {
    let mut setup = setup(seed);
    let promotions = if protocol == "c11" { (seed % 4) as usize } else { 0 };
    promote_anywhere(&mut setup, promotions, seed);
    let one_sided = seed % 2 == 1;
    let common_after = common_after((seed / 2 % 5) as u8);
    let csm =
        |keep| CsmOptions { one_sided, keep, common_after, sample: 4, window: 2, ..CsmOptions::default() };
    let sc = ScOptions { hold: Some(Duration::ZERO), common_after, ..ScOptions::default() };
    let told = match protocol {
        "csm" => run(&setup, seed, |layout| Csm::new(layout, csm(CsmOptions::default().keep))),
        "csm-invalidate" => run(&setup, seed, |layout| Csm::new(layout, csm(0))),
        "csm-ordered" => run(&setup, seed, |layout| Csm::new(layout, CsmOptions { ordered: true, ..csm(0) })),
        "sc" => run(&setup, seed, |layout| Sc::new(layout, sc)),
        "c11" => run(&setup, seed, |layout| {
            C11::new(layout, C11Options { csm: csm(CsmOptions::default().keep), sc })
        }),
        "erc" => run(&setup, seed, |layout| Erc::new(layout, ErcOptions { hold: true })),
        _ => panic!("{protocol}: which equations hold for it?"),
    };
    check(&told);
    match protocol {
        "sc" => check_sc(&told, is_placed(seed)),
        "erc" => check_erc(&told),
        // Synchronisation pages are as those of `sc`, all others as those of `csm`.
        "c11" if promotions > 0 => (),
        _ => check_csm(&told, one_sided && protocol != "csm-ordered"),
    }
    told
}

/// The name of an event, and for a page that leaves because a policy wants it elsewhere a name of its own.
fn kind(event: Event) -> String {
    match event {
        Event::Left { written: false, .. } => "Placed".into(),
        _ => format!("{event:?}").split(' ').next().expect("it has a name").into(),
    }
}

#[test]
fn what_leaves_one_node_comes_to_another() {
    for info in PROTOCOLS {
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..PROGRAMS {
            let told = std::panic::catch_unwind(|| check_run(info.name, seed))
                .unwrap_or_else(|_| panic!("{}, program {seed}", info.name));
            kinds.extend(told.events.iter().map(|(_, event, ..)| kind(*event)));
        }
        // Otherwise the equations would show nothing.
        let expected = match info.name {
            "sc" | "erc" => "Answered Arrived Asked Invalidated InvalidationSent Left Served Shared Upgraded",
            "c11" => {
                "Answered Arrived Asked DiffReceived DiffSent Given Invalidated InvalidationSent Left \
                 NoticeReceived NoticeSent Overtaken Placed Served Shared Upgraded"
            }
            _ => {
                "Answered Arrived Asked DiffReceived DiffSent Given Invalidated Left NoticeReceived \
                 NoticeSent Overtaken Placed Served Shared Upgraded"
            }
        };
        let kinds: Vec<_> = kinds.into_iter().collect();
        assert_eq!(kinds.join(" "), expected, "{}", info.name);
    }
}
