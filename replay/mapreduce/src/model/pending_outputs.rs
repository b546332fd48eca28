//! Outputs of maps that a reduce has still to fetch, by node.

use std::collections::HashMap;

use trace::ids::TaskId;

use crate::kernel::StepId;
use crate::world::NodeId;

/// Outputs to be fetched, each with the step by which the master knew of it.
#[derive(Debug, Default)]
pub(super) struct PendingOutputs {
    by_node: HashMap<NodeId, Vec<(TaskId, StepId)>>,
    /// The nodes that have some, ascending.
    nodes: Vec<NodeId>,
}

impl PendingOutputs {
    pub(super) fn add(&mut self, node: NodeId, map: TaskId, known: StepId) {
        if let Err(place) = self.nodes.binary_search(&node) {
            self.nodes.insert(place, node);
        }
        self.by_node.entry(node).or_default().push((map, known));
    }

    /// Takes the first outputs of a node, `most` at most.
    pub(super) fn take(&mut self, node: NodeId, most: usize) -> Vec<(TaskId, StepId)> {
        let Some(outputs) = self.by_node.get_mut(&node) else { return Vec::new() };
        let taken = outputs.drain(..outputs.len().min(most)).collect();
        if outputs.is_empty() {
            self.by_node.remove(&node);
            if let Ok(place) = self.nodes.binary_search(&node) {
                self.nodes.remove(place);
            }
        }
        taken
    }

    /// The nodes that have outputs, without some.
    pub(super) fn beside(&self, left_out: impl IntoIterator<Item = NodeId>) -> OtherNodes {
        let mut places: Vec<usize> =
            left_out.into_iter().filter_map(|node| self.nodes.binary_search(&node).ok()).collect();
        places.sort_unstable();
        places.dedup();
        OtherNodes { count: self.nodes.len() - places.len(), left_out: places }
    }

    /// The node of these with this number, from 0 on, in ascending order.
    pub(super) fn node(&self, number: usize, of: &OtherNodes) -> Option<NodeId> {
        let place = of.left_out.iter().fold(number, |place, left_out| place + usize::from(*left_out <= place));
        self.nodes.get(place).copied()
    }
}

/// Nodes that have outputs, without some.
pub(super) struct OtherNodes {
    pub(super) count: usize,
    /// Places of the others, ascending.
    left_out: Vec<usize>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn nodes_are_numbered_in_order_without_those_left_out() {
        let mut outputs = PendingOutputs::default();
        for node in [7, 1, 9, 4, 1, 2] {
            outputs.add(NodeId(node), TaskId(node), StepId(node));
        }
        for left_out in [&[][..], &[1], &[9, 1], &[3], &[1, 2, 4, 7, 9], &[2, 4, 2]] {
            let others = outputs.beside(left_out.iter().map(|node| NodeId(*node)));
            let expected: Vec<u32> = [1, 2, 4, 7, 9].into_iter().filter(|node| !left_out.contains(node)).collect();
            let numbered: Vec<u32> = (0..others.count).map(|number| outputs.node(number, &others).unwrap().0).collect();
            assert_eq!(numbered, expected, "{left_out:?}");
        }
        assert_eq!(outputs.take(NodeId(1), 1).len(), 1);
        assert_eq!(outputs.beside([]).count, 5);
        assert_eq!(outputs.take(NodeId(1), 3).len(), 1);
        assert_eq!(outputs.beside([]).count, 4);
        assert!(outputs.take(NodeId(1), 3).is_empty());
    }
}
