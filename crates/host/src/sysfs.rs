//! The computer as described in `/sys`.
//!
//! All functions take the root of the file system, so recorded trees of other computers can be used.

use crate::unreadable::{Unreadable, read};
use gondwana_topology::{
    Bytes, Cache, CacheKind, HugePages, Id, IdSet, ListError, MachineNode, Memory, NodeId, NodeSet,
    ProcessorSet,
};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

const NODES: &str = "sys/devices/system/node";
const PROCESSORS: &str = "sys/devices/system/cpu";

/// A file with one value; `None` if it is missing or holds something else.
fn value<T: FromStr>(path: &Path) -> Option<T> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A file with a list of numbers.
fn list<T: FromStr + Default>(path: &Path) -> Option<T> {
    let text = std::fs::read_to_string(path).ok()?;
    match text.trim() {
        "" => Some(T::default()),
        text => text.parse().ok(),
    }
}

/// The processors that are running.
pub fn processors(root: &Path) -> Result<ProcessorSet, Unreadable> {
    required(root.join(PROCESSORS).join("online"))
}

/// The list of numbers that a file must have.
fn required<I: Id, const WORDS: usize>(path: PathBuf) -> Result<IdSet<I, WORDS>, Unreadable> {
    let text = read(&path)?;
    text.trim()
        .parse()
        .map_err(|error: ListError| Unreadable { path, source: io::Error::other(error.to_string()) })
}

/// The nodes in ascending order. A kernel without NUMA shows none: then there is one node with everything.
pub fn nodes(root: &Path, online: &ProcessorSet) -> Result<Vec<MachineNode>, Unreadable> {
    let folder = root.join(NODES);
    if !folder.exists() {
        let text = read(&root.join("proc/meminfo"))?;
        let memory = Memory { huge: huge_pages(&root.join("sys/kernel/mm")), ..memory(&text) };
        return Ok(vec![MachineNode { processors: *online, memory, ..MachineNode::default() }]);
    }
    let ids: NodeSet = required(folder.join("online"))?;
    let nodes = ids.iter().map(|id| node(&folder.join(format!("node{id}")), id, online));
    // A node without processors and memory, such as one whose memory is offline, is left out.
    let nodes = nodes.filter(|node| {
        node.as_ref().map_or(true, |node| !node.processors.is_empty() || node.memory.total > Bytes(0))
    });
    let mut nodes = nodes.collect::<Result<Vec<_>, _>>()?;
    let kept: Vec<bool> = ids.iter().map(|id| nodes.iter().any(|node| node.id == id)).collect();
    for node in &mut nodes {
        // The kernel gives the distances to all nodes that are online.
        let all = std::mem::take(&mut node.distances);
        if all.len() == kept.len() {
            node.distances = all.into_iter().zip(&kept).filter(|(_, kept)| **kept).map(|(d, _)| d).collect();
        }
    }
    Ok(nodes)
}

fn node(folder: &Path, id: NodeId, online: &ProcessorSet) -> Result<MachineNode, Unreadable> {
    let processors: ProcessorSet = list(&folder.join("cpulist")).unwrap_or_default();
    let distances = std::fs::read_to_string(folder.join("distance")).unwrap_or_default();
    let memory = Memory { huge: huge_pages(folder), ..memory(&read(&folder.join("meminfo"))?) };
    Ok(MachineNode {
        id,
        // Some kernels list processors of a node that are switched off.
        processors: processors.intersection(online),
        distances: distances.split_whitespace().map_while(|number| number.parse().ok()).collect(),
        memory,
        ..MachineNode::default()
    })
}

/// Total and free memory, from the lines of a node's `meminfo` or those of the whole computer.
fn memory(text: &str) -> Memory {
    Memory {
        total: amount(text, "MemTotal:").unwrap_or_default(),
        free: amount(text, "MemFree:"),
        huge: vec![],
    }
}

/// The available memory of a node of this computer: free, or reclaimable page cache.
#[must_use]
pub fn available_memory(node: NodeId) -> Option<Bytes> {
    let text = std::fs::read_to_string(format!("/{NODES}/node{node}/meminfo")).ok()?;
    available(&text)
}

/// True if a node of this computer has hardly any memory left: near the kernel's reserve.
#[must_use]
pub fn is_full(node: NodeId) -> bool {
    are_full(&NodeSet::only(node), Bytes(0))
}

/// True if some nodes of this computer together would have hardly any memory left after `more` bytes were used.
#[must_use]
pub(crate) fn are_full(nodes: &NodeSet, more: Bytes) -> bool {
    let each = nodes.iter().map(|node| {
        let text = std::fs::read_to_string(format!("/{NODES}/node{node}/meminfo")).ok()?;
        Some((available(&text)?.0, amount(&text, "MemTotal:")?.0))
    });
    let known: Option<Vec<(u64, u64)>> = each.collect();
    known.is_some_and(|nodes| {
        let (left, total) = nodes.iter().fold((0, 0), |sum, node| (sum.0 + node.0, sum.1 + node.1));
        hardly_any(Bytes(left.saturating_sub(more.0)), Bytes(total))
    })
}

fn hardly_any(left: Bytes, total: Bytes) -> bool {
    // The kernel's reserves grow with the size of a node.
    left.0 < (total.0 / 256).max(16 << 20)
}

fn available(meminfo: &str) -> Option<Bytes> {
    let files = amount(meminfo, "FilePages:")?.0.saturating_sub(amount(meminfo, "Shmem:")?.0);
    Some(Bytes(amount(meminfo, "MemFree:")?.0 + files))
}

/// The amount on the line with this name.
fn amount(meminfo: &str, name: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.split_once(name).map(|(_, rest)| rest))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| Bytes(kib << 10))
}

/// The sizes of huge pages with a nonzero count.
fn huge_pages(folder: &Path) -> Vec<HugePages> {
    let folders = folders(&folder.join("hugepages"), "hugepages-");
    let mut sizes: Vec<HugePages> = folders
        .filter_map(|(name, folder)| {
            let size = Bytes(name.strip_suffix("kB")?.parse::<u64>().ok()? << 10);
            let number = |file: &str| value::<u64>(&folder.join(file));
            let (total, free) = (number("nr_hugepages")?, number("free_hugepages")?);
            (total > 0).then(|| HugePages { size, total, free: free.min(total) })
        })
        .collect();
    sizes.sort_by_key(|pages| pages.size);
    sizes
}

/// The folders whose names begin with `prefix`: the rest of each name, and where it is.
fn folders(folder: &Path, prefix: &'static str) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let rest = entry.file_name().to_str()?.strip_prefix(prefix)?.to_owned();
        Some((rest, entry.path()))
    })
}

/// The caches of the online processors, each once.
#[must_use]
pub fn caches(root: &Path, online: &ProcessorSet) -> Vec<Cache> {
    let mut caches: Vec<Cache> = vec![];
    for processor in online.iter() {
        let folder = root.join(PROCESSORS).join(format!("cpu{processor}/cache"));
        for cache in folders(&folder, "index").filter_map(|(_, folder)| cache(&folder, online)) {
            let is_known = |known: &Cache| {
                (known.level, known.kind) == (cache.level, cache.kind) && known.processors == cache.processors
            };
            if cache.processors.contains(processor) && !caches.iter().any(is_known) {
                caches.push(cache);
            }
        }
    }
    caches.sort_by_key(|cache| (cache.level, cache.kind != CacheKind::Data, cache.processors.first()));
    caches
}

fn cache(folder: &Path, online: &ProcessorSet) -> Option<Cache> {
    let kind = match value::<String>(&folder.join("type"))?.as_str() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        "Unified" => CacheKind::Unified,
        _ => return None,
    };
    let size = value::<String>(&folder.join("size"))?;
    let processors: ProcessorSet = list(&folder.join("shared_cpu_list"))?;
    Some(Cache {
        level: value(&folder.join("level")).filter(|&level| level > 0)?,
        kind,
        // The kernel counts in KiB.
        size: Bytes(size.strip_suffix('K')?.parse::<u64>().ok().filter(|&size| size > 0)? << 10),
        line: value(&folder.join("coherency_line_size")).unwrap_or(0),
        ways: value(&folder.join("ways_of_associativity")).unwrap_or(0),
        processors: processors.intersection(online),
    })
}

/// The sets of processors that share something, such as a core, in ascending order.
#[must_use]
pub fn siblings(root: &Path, online: &ProcessorSet, file: &str) -> Vec<ProcessorSet> {
    let mut sets: Vec<ProcessorSet> = vec![];
    for processor in online.iter().filter(|processor| processor.index() < ProcessorSet::CAPACITY) {
        let path = root.join(PROCESSORS).join(format!("cpu{processor}/topology")).join(file);
        let set = list::<ProcessorSet>(&path).unwrap_or_default().intersection(online);
        if set.first() == Some(processor) {
            sets.push(set);
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_files_hold_is_available_and_shared_memory_is_not() {
        let meminfo = "Node 1 MemTotal: 1000 kB\nNode 1 MemFree: 100 kB\nNode 1 FilePages: 50 kB\nNode 1 Shmem: 20 kB\n";
        assert_eq!(available(meminfo), Some(Bytes(130 << 10)));
        assert_eq!(available("Node 1 MemFree: 100 kB"), None);
    }

    #[test]
    fn large_nodes_are_full_with_more_left() {
        let mebibytes = |left: u64, total: u64| hardly_any(Bytes(left << 20), Bytes(total << 20));
        assert!(mebibytes(15, 128) && !mebibytes(16, 128));
        assert!(mebibytes(255, 64 << 10) && !mebibytes(256, 64 << 10));
    }
}
