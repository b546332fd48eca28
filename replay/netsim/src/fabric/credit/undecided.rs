//! Heads that have not committed themselves: none of the lanes that they may take has room.
//!
//! A head waits for so many credits on each of these lanes, and looks again when one of them may have them, not whenever something changes
//! there.

use crate::fabric::ids::LaneId;
use crate::topology::LinkId;
use smallvec::SmallVec;
use typed_index_collections::TiVec;

/// A head that waits for credits of a lane.
#[derive(Clone, Copy)]
struct Waiting {
    queue: LaneId,
    /// Which of the heads of its queue it is.
    head: HeadNumber,
    need: u32,
}

/// Which of the heads of a queue is the present one, and whether it has to choose: odd while it has.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct HeadNumber(u32);

/// Who waits for room.
pub(super) struct Undecided {
    /// For each lane who waits for it; entries of heads that have gone on are left there until the lane is looked at. Mostly a line of a
    /// cache has them all.
    by_lane: TiVec<LaneId, SmallVec<[Waiting; 4]>>,
    /// For each link the VLs for which somebody waits, a bit each.
    vls: TiVec<LinkId, u16>,
    heads: TiVec<LaneId, HeadNumber>,
}

impl Undecided {
    /// Nobody waits.
    pub fn new(links: usize, queues: usize) -> Self {
        Self {
            by_lane: vec![SmallVec::new(); queues].into(),
            vls: vec![0; links].into(),
            heads: vec![HeadNumber::default(); queues].into(),
        }
    }

    /// The head of `queue` has to choose from now on.
    #[inline]
    pub fn begin(&mut self, queue: LaneId) {
        self.heads[queue].0 |= 1;
    }

    /// The head of `queue` has chosen.
    #[inline]
    pub fn end(&mut self, queue: LaneId) {
        let head = &mut self.heads[queue];
        head.0 = (head.0 | 1).wrapping_add(1);
    }

    /// The VLs of `link` for which heads wait, a bit each.
    #[inline]
    pub fn waited_for(&self, link: LinkId) -> u16 {
        self.vls[link]
    }

    /// Whether a head waits for room on a lane of `link`.
    #[inline]
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
            if heads[waiting.queue] != waiting.head {
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

    /// The head of `queue`, which has to choose, waits for `need` credits on `lane`, VL `vl` of `link`, too. Returns whether that is new.
    pub fn wait(&mut self, queue: LaneId, (link, vl, lane): (LinkId, u32, LaneId), need: u32) -> bool {
        self.vls[link] |= 1 << vl;
        let head = self.heads[queue];
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

    /// What is looked at of the head of `queue`: something to wait for.
    #[inline]
    pub fn read_head(&self, queue: LaneId) -> u64 {
        self.heads[queue].0.into()
    }

    /// What is looked at of those that wait for `lane`: something to wait for.
    #[inline]
    pub fn read_waiting(&self, lane: LaneId) -> u64 {
        self.by_lane[lane].first().map_or(0, |waiting| waiting.need.into())
    }
}
