//! Write notices that one node logs in the memory of another one.

use super::RemoteMemory;

/// The log's entry for a page that node `origin` has written.
fn entry(origin: u16, page: u32) -> u64 {
    u64::from(origin) << 32 | u64::from(page)
}

/// The origin and the page of an entry.
pub(super) fn parts(entry: u64) -> (u16, u32) {
    ((entry >> 32 & 0xffff) as u16, (entry & 0xffff_ffff) as u32)
}

/// Logs at `sharer` that node `origin` has written a page, on behalf of node `me`. False if there is no room: the sharer has to be
/// sent a message.
pub fn post_notice(sharer: &dyn RemoteMemory, me: u16, origin: u16, page: u32) -> bool {
    let layout = sharer.layout();
    if me >= layout.nodes() {
        return false;
    }
    let log = layout.notice_log(sharer, me);
    let has_room = log.room() > 0;
    if has_room {
        log.write(entry(origin, page));
    }
    has_room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_origin_and_page() {
        for (origin, page) in [(0, 0), (255, u32::MAX), (u16::MAX, 1), (3, 1 << 31)] {
            assert_eq!(parts(entry(origin, page)), (origin, page));
        }
    }
}
