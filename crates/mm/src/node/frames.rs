//! The frames of the machine: its nodes, what moves between them, and which tasks wait for free ones.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::ids::{FolioId, NodeId};
use crate::node::migrate::Migration;
use crate::node::nodes::Nodes;
use crate::node::throttle::Throttled;
use crate::tiering::hint::Hints;

/// All frames.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    pub(crate) nodes: Nodes,
    /// The node of the CPU on which things happen.
    pub(crate) nid: NodeId,
    pub(crate) throttled: Throttled,
    /// Folios on their way to another node.
    pub(crate) migrating: BTreeMap<FolioId, Migration>,
    /// Where hint faults promote.
    pub(crate) hints: Option<Hints>,
    /// The last reclaim for a task ended because swap takes no more writes for now.
    pub(crate) reclaim_blocked: bool,
    /// Allocations may take what is kept for reclaim.
    pub(crate) memalloc: bool,
}

impl Frames {
    /// All of them free.
    pub(crate) fn new(cfg: &Config) -> Result<Frames, String> {
        let nodes = Nodes::new(cfg);
        Ok(Frames {
            nid: nodes.of_cpu(0),
            nodes,
            throttled: Throttled::default(),
            migrating: BTreeMap::new(),
            hints: Hints::new(cfg.numa.as_ref())?,
            reclaim_blocked: false,
            memalloc: false,
        })
    }
}
