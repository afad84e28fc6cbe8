//! When pages of a run become common.

use super::options::{Fabric, RunOptions};
use super::policies::Policies;
use crate::program::Program;
use crate::{limits, probes};
use gondwana_control::{CommonAfter, ProtocolInfo};
use gondwana_elf::Dependencies;
use std::num::NonZeroU8;

/// The library with which a program asks for homes of its memory, or counts accesses to it.
const API: &str = "libgondwana_api.so";

/// When pages become common, as the user wants it or as is best here; `None` if never.
///
/// Pages cannot be common to computers, nor where addresses are limited. The monitor sees what moves, so that it has everything
/// move. Where one memory is as near as another to all processors, there is nothing to wait for, unless somebody is to decide where pages
/// are.
pub(crate) fn after(
    options: &RunOptions,
    protocol: &ProtocolInfo,
    fabric: Fabric,
    policies: &Policies,
    program: &Program,
    is_monitored: bool,
) -> Option<CommonAfter> {
    let can = protocol.common && fabric == Fabric::Shm && !is_monitored && limits::has_all_addresses();
    if !can {
        return None;
    }
    if let Some(wanted) = options.common_after {
        return wanted.0;
    }
    let places = policies.place_memory() || uses_api(&program.image);
    let at_once = !places && probes::has_one_memory();
    Some(if at_once { CommonAfter::Touch } else { CommonAfter::Times(NonZeroU8::MIN) })
}

fn uses_api(image: &[u8]) -> bool {
    let needed = Dependencies::of(image).map_or_else(Vec::new, |found| found.needed);
    needed.iter().any(|name| name.starts_with(API))
}
