//! Heads that have not committed themselves: none of the lanes that they may take has room.
//!
//! A head waits for so many credits on each of these lanes, and looks again when one of them may have them, not whenever something changes
//! there.

use crate::fabric::ids::LaneId;
use crate::topology::LinkId;
use typed_index_collections::TiVec;

/// A head that waits for credits of a lane.
#[derive(Clone, Copy)]
struct Waiting {
    queue: LaneId,
    /// Which of the heads of its queue it is.
    head: u32,
    need: u32,
}

/// The head of a queue.
#[derive(Clone, Copy, Default)]
struct Head {
    number: u32,
    waits: bool,
}

/// Who waits for room.
pub(super) struct Undecided {
    /// For each lane who waits for it; entries of heads that have gone on are left there until the lane is looked at.
    by_lane: TiVec<LaneId, Vec<Waiting>>,
    /// For each link the VLs for which somebody waits, a bit each.
    vls: TiVec<LinkId, u16>,
    heads: TiVec<LaneId, Head>,
}

impl Undecided {
    /// Nobody waits.
    pub fn new(links: usize, queues: usize) -> Self {
        Self {
            by_lane: vec![Vec::new(); queues].into(),
            vls: vec![0; links].into(),
            heads: vec![Head::default(); queues].into(),
        }
    }

    /// The head of `queue` has to choose from now on.
    pub fn begin(&mut self, queue: LaneId) {
        self.heads[queue].waits = true;
    }

    /// The head of `queue` has chosen.
    pub fn end(&mut self, queue: LaneId) {
        let head = &mut self.heads[queue];
        *head = Head { number: head.number.wrapping_add(1), waits: false };
    }

    /// The VLs of `link` for which heads wait, a bit each.
    pub fn waited_for(&self, link: LinkId) -> u16 {
        self.vls[link]
    }

    /// Whether a head waits for room on a lane of `link`.
    pub fn any(&self, link: LinkId) -> bool {
        self.vls[link] != 0
    }

    /// Appends the queues whose heads wait for no more than the `room` credits that are free on `lane`, VL `vl` of `link`, to `choosing`.
    /// Returns the least that the others wait for.
    pub fn look_again(
        &mut self,
        (link, vl, lane): (LinkId, u32, LaneId),
        room: i64,
        choosing: &mut Vec<LaneId>,
    ) -> Option<u32> {
        let heads = &self.heads;
        let mut least = None;
        self.by_lane[lane].retain(|waiting| {
            let head = heads[waiting.queue];
            if !head.waits || head.number != waiting.head {
                return false;
            }
            if i64::from(waiting.need) <= room {
                choosing.push(waiting.queue);
                return false;
            }
            least = Some(least.map_or(waiting.need, |least: u32| least.min(waiting.need)));
            true
        });
        if least.is_none() {
            self.vls[link] &= !(1 << vl);
        }
        least
    }

    /// The head of `queue` waits for `need` credits on `lane`, VL `vl` of `link`, too. Returns whether that is new.
    pub fn wait(&mut self, queue: LaneId, (link, vl, lane): (LinkId, u32, LaneId), need: u32) -> bool {
        self.vls[link] |= 1 << vl;
        let head = self.heads[queue].number;
        let new = Waiting { queue, head, need };
        let list = &mut self.by_lane[lane];
        match list.iter_mut().find(|waiting| waiting.queue == queue) {
            Some(waiting) if waiting.head == head && waiting.need <= need => false,
            Some(waiting) => {
                *waiting = new;
                true
            }
            None => {
                list.push(new);
                true
            }
        }
    }
}
