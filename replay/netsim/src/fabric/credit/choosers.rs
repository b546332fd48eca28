//! The heads that choose in one instant, in the order in which they do.

use crate::fabric::ids::LaneId;
use crate::topology::NodeId;

/// A head that chooses.
#[derive(Clone, Copy)]
struct Chooser {
    switch: u32,
    /// The number of its queue among those of the switch; in the end its place in the switch's order.
    number: u32,
    queue: LaneId,
}

/// Puts heads in order, by counting those of each switch. Between two instants it is empty.
#[derive(Default)]
pub(super) struct Choosers {
    heads: Vec<Chooser>,
    /// The same, switch by switch.
    placed: Vec<Chooser>,
    /// For each node how many heads it has, then where they are placed.
    places: Vec<u32>,
    /// The switches that have heads.
    switches: Vec<u32>,
}

impl Choosers {
    /// Adds the head of `queue`, whose number among those of `switch` is `number`.
    #[inline]
    pub fn add(&mut self, switch: NodeId, number: u32, queue: LaneId) {
        let node = switch.0 as usize;
        if node >= self.places.len() {
            self.places.resize(node + 1, 0);
        }
        let heads = &mut self.places[node];
        if *heads == 0 {
            self.switches.push(switch.0);
        }
        *heads += 1;
        self.heads.push(Chooser { switch: switch.0, number, queue });
    }

    /// Appends the queues of all heads to `ordered`, each once: switch by switch (by their numbers if `by_number`), those of one switch from behind
    /// number `start` on, once around its `queues`: what `turn` says of it.
    pub fn order(&mut self, by_number: bool, turn: impl Fn(NodeId) -> (u32, u32), ordered: &mut Vec<LaneId>) {
        if by_number {
            self.switches.sort_unstable();
        }
        let mut begin = 0;
        for switch in &self.switches {
            let place = &mut self.places[*switch as usize];
            begin += std::mem::replace(place, begin);
        }
        self.placed.clear();
        self.placed.extend_from_slice(&self.heads);
        for head in self.heads.drain(..) {
            let place = &mut self.places[head.switch as usize];
            self.placed[*place as usize] = head;
            *place += 1;
        }
        let mut begin = 0;
        for switch in self.switches.drain(..) {
            let end = std::mem::take(&mut self.places[switch as usize]) as usize;
            let heads = &mut self.placed[begin..end];
            if heads.len() > 1 {
                let (start, queues) = turn(NodeId(switch));
                for Chooser { number, .. } in &mut *heads {
                    *number = if *number > start { *number - start - 1 } else { *number + queues - start - 1 };
                }
                heads.sort_unstable_by_key(|head| head.number);
            }
            let mut before = None;
            for head in heads {
                if before != Some(head.queue) {
                    ordered.push(head.queue);
                }
                before = Some(head.queue);
            }
            begin = end;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Beside a sort by switch and place, several times one after the other.
        #[test]
        fn orders_as_a_sort_does(
            instants in prop::collection::vec(prop::collection::vec((0u32..5, 0u32..12), 1..30), 1..4),
            starts in prop::collection::vec(0u32..12, 5),
        ) {
            let mut choosers = Choosers::default();
            for heads in instants {
                let queue = |(switch, number): (u32, u32)| LaneId(switch * 100 + number);
                heads.iter().for_each(|head| choosers.add(NodeId(head.0), head.1, queue(*head)));
                let mut ordered = Vec::new();
                choosers.order(true, |switch| (starts[switch.0 as usize], 12), &mut ordered);
                let mut expected = heads;
                expected.sort_by_key(|(switch, number)| (*switch, (number + 11 - starts[*switch as usize]) % 12));
                expected.dedup();
                prop_assert_eq!(ordered, expected.into_iter().map(queue).collect::<Vec<_>>());
            }
        }
    }
}
