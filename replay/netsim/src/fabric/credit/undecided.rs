//! Heads that have not committed themselves: none of the lanes that they may take has room.
//!
//! A head looks again whenever one of these lanes may have room. Until then it stands in the list of each of their links.

use crate::fabric::ids::LaneId;
use crate::topology::LinkId;
use typed_index_collections::TiVec;

/// Who waits for room.
pub(super) struct Undecided {
    /// For each link, the queues whose heads wait for room on one of its lanes.
    by_link: TiVec<LinkId, Vec<LaneId>>,
    /// For each queue whether its head waits; entries of queues whose head has gone on are left in the lists.
    waits: TiVec<LaneId, bool>,
}

impl Undecided {
    /// Nobody waits.
    pub fn new(links: usize, queues: usize) -> Self {
        Self { by_link: vec![Vec::new(); links].into(), waits: vec![false; queues].into() }
    }

    /// The head of `queue` has to choose from now on.
    pub fn begin(&mut self, queue: LaneId) {
        self.waits[queue] = true;
    }

    /// The head of `queue` has chosen.
    pub fn end(&mut self, queue: LaneId) {
        self.waits[queue] = false;
    }

    /// Appends the queues whose heads wait for room on a lane of `link` to `choosing`.
    pub fn look_again(&mut self, link: LinkId, choosing: &mut Vec<LaneId>) {
        choosing.extend(self.by_link[link].drain(..).filter(|queue| self.waits[*queue]));
    }

    /// Whether a head waits for room on a lane of `link`.
    pub fn any(&self, link: LinkId) -> bool {
        !self.by_link[link].is_empty()
    }

    /// The head of `queue` waits for room on a lane of `link`, too.
    pub fn wait(&mut self, queue: LaneId, link: LinkId) {
        let list = &mut self.by_link[link];
        if !list.contains(&queue) {
            list.push(queue);
        }
    }
}
