//! What the emulated computer looks like.

/// One NUMA node.
#[derive(Clone, Debug)]
pub struct Node {
    /// The numbers of its processors; none for a node that has memory only.
    pub processors: Vec<u32>,
    /// Its memory, in MiB.
    pub memory: u32,
}

/// A computer of several NUMA nodes.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The nodes, by number.
    pub nodes: Vec<Node>,
    /// The distance from each node (row) to each (column), in the kernel's unit: 10 to itself.
    pub distances: Vec<Vec<u8>>,
}

impl Machine {
    /// The options that make QEMU emulate it.
    pub(crate) fn options(&self) -> Vec<String> {
        let processors: usize = self.nodes.iter().map(|node| node.processors.len()).sum();
        let memory: u32 = self.nodes.iter().map(|node| node.memory).sum();
        let mut options = vec![];
        let mut add = |option: &str, value: String| options.extend([option.to_owned(), value]);
        // Each processor is a socket of its own: cores of one socket can't be spread over nodes.
        add("-smp", format!("{processors},sockets={processors},cores=1,threads=1"));
        add("-m", format!("{memory}M"));
        for (number, node) in self.nodes.iter().enumerate() {
            add("-object", format!("memory-backend-ram,id=memory{number},size={}M", node.memory));
            let processors: String = node.processors.iter().map(|cpu| format!(",cpus={cpu}")).collect();
            add("-numa", format!("node,nodeid={number},memdev=memory{number}{processors}"));
        }
        for (from, row) in self.distances.iter().enumerate() {
            for (to, distance) in row.iter().enumerate() {
                add("-numa", format!("dist,src={from},dst={to},val={distance}"));
            }
        }
        options
    }
}
