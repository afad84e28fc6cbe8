//! How much memory a node's process has, read without the node noticing.

use gondwana_page::PAGE_SIZE;
use serde::Serialize;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Memory of a node at one moment, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Used {
    /// Shared pages that it has a copy of, its own or another node's. Common ones are no node's.
    pub shared: u64,
    /// All pages of the process that are in memory.
    pub resident: u64,
}

/// The memory of a process of this computer; `None` if that is no node, or another user's.
pub fn used(process: u32) -> Option<Used> {
    let statm = fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let resident = pages * PAGE_SIZE as u64;
    // The kernel counts the pages of a memfd as blocks of its file.
    let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.filter_map(Result::ok);
    let span = files.map(|file| file.path()).find(|path| {
        fs::read_link(path).is_ok_and(|name| name.as_os_str().as_encoded_bytes().starts_with(SPAN))
    })?;
    let shared = fs::metadata(span).ok()?.blocks() * 512;
    Some(Used { shared, resident })
}

/// The kernel's name of the file that holds a node's shared pages.
const SPAN: &[u8] = b"/memfd:gondwana-span";
