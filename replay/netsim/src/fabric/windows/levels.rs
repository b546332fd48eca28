//! Which switches are shared out together.

use std::ops::Range;

use crate::topology::{Structure, Topology};

/// Switches that are shared out together: of a tree those of a level, so that subtrees stay together.
pub(in crate::fabric) fn levels(topology: &Topology) -> Vec<Range<u32>> {
    let sizes = match topology.structure() {
        Structure::Tree(tree) => (1..=tree.height()).map(|level| tree.nodes(level)).collect(),
        Structure::Any | Structure::Grid(_) | Structure::Lattice(_) => vec![topology.switches()],
    };
    let mut begin = topology.hosts();
    let level = |size: &u32| {
        let level = begin..begin + size;
        begin = level.end;
        level
    };
    sizes.iter().map(level).collect()
}
