//! The transactions from each node to each other node.

use crate::Flow;
use crate::row_sums::{Amount, RowKey};
use gondwana_monitor::Kind;

/// `flows[from][to]`.
pub(crate) fn flows(rows: &[(RowKey, Amount)], nodes: usize) -> Vec<Vec<Flow>> {
    let mut flows = vec![vec![Flow::default(); nodes]; nodes];
    for (like, amount) in rows.iter().filter(|(like, _)| usize::from(like.peer) < nodes) {
        let (node, peer) = (usize::from(like.node), usize::from(like.peer));
        let (from, to) = if like.kind == Kind::Diff { (node, peer) } else { (peer, node) };
        let flow = &mut flows[from][to];
        let count = match like.kind {
            Kind::Diff => &mut flow.diffs,
            Kind::Notice => &mut flow.notices,
            kind if kind.is_fetch() || kind == Kind::Prefetched => &mut flow.pages,
            _ => continue,
        };
        *count = count.saturating_add(amount.count);
        flow.bytes = flow.bytes.saturating_add(amount.bytes);
    }
    flows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_from_the_peer_and_diffs_go_to_it() {
        let row = |kind, bytes| {
            let like = RowKey { address: 0, unit: 12, node: 1, kind, peer: 0, thread: 0, code: 0 };
            (like, Amount { count: 2, bytes })
        };
        let flows = flows(&[row(Kind::ColdRead, 8192), row(Kind::Diff, 10), row(Kind::Notice, 0)], 2);
        assert_eq!(flows[0][1], Flow { pages: 2, diffs: 0, notices: 2, bytes: 8192 });
        assert_eq!(flows[1][0], Flow { pages: 0, diffs: 2, notices: 0, bytes: 10 });
    }
}
