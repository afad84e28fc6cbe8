//! The mappings of a running process and the nodes of their pages, from `/proc`.

use crate::unreadable::{Unreadable, read};
use gondwana_page::PAGE_SIZE;
use gondwana_topology::NodeId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// The purpose of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Memory of `malloc`: the brk heap, or an arena of glibc.
    Heap,
    /// The main thread's stack.
    Stack,
    /// Private memory without a file.
    Anonymous,
    /// Memory that processes can share.
    Shared,
    /// A file's contents: programs, libraries, data.
    File,
}

impl Kind {
    /// Its name for users.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Anonymous => "anonymous",
            Self::Shared => "shared",
            Self::File => "file",
        }
    }
}

/// One mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mapping {
    /// Its addresses.
    pub addresses: Range<usize>,
    /// Its purpose.
    pub kind: Kind,
    /// The file, if there is one, or the kernel's name of it.
    pub name: String,
    /// Its memory policy, in the kernel's notation.
    pub policy: String,
    /// Its heap, if any: `[heap]`, an arena of the C library, or the rule for allocations (`gondwana exec --malloc`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap: Option<String>,
    /// Bytes on each node that holds any.
    pub bytes: BTreeMap<NodeId, u64>,
}

/// The prefix of the name of the page in front of the memory of a rule for allocations. The hexadecimal length of
/// that memory in bytes and the rule follow.
pub const RULE_MARK: &str = "gondwana malloc ";

/// The mappings of a process in ascending order; `root` is where `proc` is mounted.
pub fn mappings(root: &Path, process: u32) -> Result<Vec<Mapping>, Unreadable> {
    let folder = root.join("proc").join(process.to_string());
    let maps = read(&folder.join("maps"))?;
    let nodes = read(&folder.join("numa_maps"))?;
    Ok(join(&maps, &nodes))
}

/// Joins the two files. A mapping that appeared or vanished between the two reads is left out.
fn join(maps: &str, nodes: &str) -> Vec<Mapping> {
    let places: BTreeMap<usize, Place> = nodes.lines().filter_map(place).collect();
    let areas: Vec<Area<'_>> = maps.lines().filter_map(area).collect();
    let following = areas.iter().skip(1).map(Some).chain([None]);
    let mut of_rule = None;
    let found = areas.iter().zip(following).filter_map(|(area, next)| {
        of_rule = rule(area).or(of_rule.take());
        let rule = of_rule.as_ref().filter(|(memory, _)| memory.contains(&area.addresses.start));
        let place = places.get(&area.addresses.start)?;
        let kind = if rule.is_some() { Kind::Heap } else { kind(area, next) };
        let heap = (kind == Kind::Heap).then(|| match rule {
            Some((_, rule)) => (*rule).to_owned(),
            None if area.name.is_empty() => format!("arena {:x}", area.addresses.start),
            None => area.name.to_owned(),
        });
        Some(Mapping {
            addresses: area.addresses.clone(),
            kind,
            name: area.name.to_owned(),
            policy: place.policy.clone(),
            heap,
            bytes: place.bytes.clone(),
        })
    });
    found.collect()
}

/// A line of `maps`.
struct Area<'a> {
    addresses: Range<usize>,
    permissions: &'a str,
    name: &'a str,
}

fn area(line: &str) -> Option<Area<'_>> {
    // Addresses, permissions, offset, device, inode, and then a name that may have spaces.
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let addresses = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
    if addresses.start > addresses.end {
        return None;
    }
    let permissions = fields.next()?;
    let name = fields.nth(3).unwrap_or("").trim_start();
    Some(Area { addresses, permissions, name })
}

/// The memory behind a named page, and its rule.
fn rule<'a>(area: &Area<'a>) -> Option<(Range<usize>, &'a str)> {
    let name = area.name.strip_prefix("/memfd:")?.strip_prefix(RULE_MARK)?;
    let (bytes, rule) = name.split_once(' ')?;
    let end = area.addresses.end.checked_add(usize::from_str_radix(bytes, 16).ok()?)?;
    Some((area.addresses.end..end, rule.strip_suffix(" (deleted)").unwrap_or(rule)))
}

/// A line of `numa_maps`.
struct Place {
    policy: String,
    bytes: BTreeMap<NodeId, u64>,
}

fn place(line: &str) -> Option<(usize, Place)> {
    let mut fields = line.split(' ');
    let start = usize::from_str_radix(fields.next()?, 16).ok()?;
    let policy = fields.next()?.to_owned();
    let mut pages: BTreeMap<NodeId, u64> = BTreeMap::new();
    let mut page_size = PAGE_SIZE as u64;
    for field in fields {
        let Some((name, number)) = field.split_once('=') else { continue };
        if let Some(node) = name.strip_prefix('N').and_then(|node| node.parse().ok()).map(NodeId) {
            pages.insert(node, number.parse().ok()?);
        } else if name == "kernelpagesize_kB" {
            page_size = number.parse::<u64>().ok()?.saturating_mul(1024);
        }
    }
    pages.values_mut().for_each(|pages| *pages = pages.saturating_mul(page_size));
    Some((start, Place { policy, bytes: pages }))
}

/// Each arena of glibc begins where an address divides by this, with the part in use; the rest is inaccessible.
const ARENA: usize = 64 << 20;

fn kind(area: &Area<'_>, next: Option<&Area<'_>>) -> Kind {
    let start = area.addresses.start;
    let is_arena = || {
        let rest = next.filter(|next| next.permissions == "---p" && next.name.is_empty());
        rest.is_some_and(|rest| rest.addresses == (area.addresses.end..start.saturating_add(ARENA)))
    };
    match area.name {
        "[heap]" => Kind::Heap,
        "[stack]" => Kind::Stack,
        _ if area.permissions.ends_with('s') => Kind::Shared,
        "" if start.is_multiple_of(ARENA) && is_arena() => Kind::Heap,
        name if name.is_empty() || name.starts_with('[') => Kind::Anonymous,
        _ => Kind::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55f000000000-55f000002000 r-xp 00000000 fe:00 1234                       /usr/bin/two words
55f010000000-55f010021000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000021000 rw-p 00000000 00:00 0 
7f0000021000-7f0004000000 ---p 00000000 00:00 0 
7f0010000000-7f0010400000 rw-p 00000000 00:0f 77                         /anon_hugepage (deleted)
7f0020000000-7f0020001000 rw-s 00000000 00:01 55                         /dev/shm/x
7f0030000000-7f0030001000 rw-p 00000000 00:00 0 
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
";
    const NODES: &str = "\
55f000000000 default file=/usr/bin/two\\040words mapped=2 N1=2 kernelpagesize_kB=4
55f010000000 bind:0-1 heap anon=5 dirty=5 N0=2 N1=3 kernelpagesize_kB=4
7f0000000000 default anon=2 dirty=2 N3=2 kernelpagesize_kB=4
7f0000021000 default
7f0010000000 interleave:0-3 file=/anon_hugepage\\040(deleted) huge anon=2 dirty=2 N2=2 kernelpagesize_kB=2048
7f0020000000 default file=/dev/shm/x dirty=1 N0=1 kernelpagesize_kB=4
7ffc00000000 default stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4
";

    #[test]
    fn mappings_know_their_kind_and_their_nodes() {
        let mappings = join(MAPS, NODES);
        let kinds: Vec<Kind> = mappings.iter().map(|mapping| mapping.kind).collect();
        let rest = [Kind::Anonymous, Kind::File, Kind::Shared, Kind::Stack];
        assert_eq!(kinds, [&[Kind::File, Kind::Heap, Kind::Heap], &rest[..]].concat());
        assert_eq!(mappings[0].name, "/usr/bin/two words");
        assert_eq!(mappings[1].policy, "bind:0-1");
        assert_eq!(mappings[1].bytes, BTreeMap::from([(NodeId(0), 2 * 4096), (NodeId(1), 3 * 4096)]));
        assert_eq!(mappings[4].bytes, BTreeMap::from([(NodeId(2), 2 * 2048 * 1024)]));
        assert_eq!(mappings[3].bytes, BTreeMap::new());
    }

    #[test]
    fn heaps_have_names() {
        const MAPS: &str = "\
55f010000000-55f010021000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000021000 rw-p 00000000 00:00 0 
7f0000021000-7f0004000000 ---p 00000000 00:00 0 
7f0010000000-7f0010001000 ---p 00000000 00:01 77                         /memfd:gondwana malloc 3000 >=1M=striped:4 (deleted)
7f0010001000-7f0010002000 rw-p 00000000 00:00 0 
7f0010002000-7f0010004000 ---p 00000000 00:00 0 
7f0010004000-7f0010005000 rw-p 00000000 00:00 0 
";
        let nodes = MAPS.lines().map(|line| format!("{} default\n", line.split('-').next().unwrap()));
        let mappings = join(MAPS, &nodes.collect::<String>());
        let heaps: Vec<Option<&str>> = mappings.iter().map(|mapping| mapping.heap.as_deref()).collect();
        let rule = Some(">=1M=striped:4");
        assert_eq!(heaps, [Some("[heap]"), Some("arena 7f0000000000"), None, None, rule, rule, None]);
    }

    #[test]
    fn a_mapping_that_only_one_file_has_is_left_out() {
        assert!(join(MAPS, NODES).iter().all(|mapping| mapping.addresses.start != 0x7f00_3000_0000));
    }

    #[test]
    fn an_own_page_is_found() {
        let mut page = vec![0_u8; 1 << 20];
        page.fill(1);
        let address = page.as_ptr() as usize + 4096;
        let mappings = mappings(Path::new("/"), std::process::id()).unwrap();
        let own = mappings.iter().find(|mapping| mapping.addresses.contains(&address)).unwrap();
        assert!(own.bytes.values().sum::<u64>() >= (1 << 20) - 4096, "{own:?}");
    }
}
