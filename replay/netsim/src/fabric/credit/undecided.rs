//! Heads that have not committed themselves: none of the lanes that they may take has room.
//!
//! A head looks again whenever one of these lanes may have room. Until then it stands in the list of each of their links.

use super::Credit;
use crate::fabric::packet::Observer;
use crate::kernel::random::draw;
use crate::routing::Candidates;
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};

/// Who waits for room.
pub(super) struct Undecided {
    /// For each link, the queues whose heads wait for room on one of its lanes.
    by_link: Vec<Vec<u32>>,
    /// For each queue whether its head waits; entries of queues whose head has gone on are left in the lists.
    waits: Vec<bool>,
}

impl Undecided {
    /// Nobody waits.
    pub fn new(links: usize, queues: usize) -> Self {
        Self { by_link: vec![Vec::new(); links], waits: vec![false; queues] }
    }

    /// The head of `queue` has to choose from now on.
    pub fn begin(&mut self, queue: u32) {
        self.waits[queue as usize] = true;
    }

    /// Appends the queues whose heads wait for room on a lane of `link` to `choosing`.
    pub fn look_again(&mut self, link: u32, choosing: &mut Vec<u32>) {
        choosing.extend(self.by_link[link as usize].drain(..).filter(|queue| self.waits[*queue as usize]));
    }

    fn wait(&mut self, queue: u32, link: u32) {
        let list = &mut self.by_link[link as usize];
        if !list.contains(&queue) {
            list.push(queue);
        }
    }
}

impl<O: Observer> Credit<O> {
    /// The head of `queue` commits itself to the lane with most room among those that its routing prefers, to the escape's if
    /// none of them has room, or waits for room.
    pub(super) fn choose_with_room(&mut self, queue: u32, now: SimTime) {
        let (input_link, vl) = (self.number.link(queue), self.number.vl(queue));
        let at = NodeId(self.links[input_link as usize].to);
        let packet = *self.packets.get(self.lanes.lanes[queue as usize].first);
        let to = NodeId(packet.destination);
        let on_escape = vl % self.classes < u32::from(self.routes.escape_classes());
        let preferred = self.routes.next(at, LinkId(input_link), to);
        let escape = self.routes.escape(at, LinkId(input_link), on_escape, to);
        let (base, need, key) = (u32::from(packet.base), u32::from(packet.credits), packet.key);
        let number = self.number;
        let lanes = |candidates: Candidates| -> Vec<u32> {
            let first = base + u32::from(candidates.class);
            let of_link =
                |link: &LinkId| (0..candidates.classes).map(|class| (link.0, u32::from(class))).collect::<Vec<_>>();
            let pairs = candidates.links.iter().flat_map(of_link);
            pairs.map(|(link, class)| number.lane(link, first + class)).collect()
        };
        let ranks: Vec<Vec<u32>> = [Some(preferred), escape].into_iter().flatten().map(lanes).collect();
        let chosen = ranks.iter().find_map(|lanes| self.most_room(lanes, need, now, at, key));
        if let Some(lane) = chosen {
            if let Some(undecided) = &mut self.undecided {
                undecided.waits[queue as usize] = false;
            }
            self.lanes.claim(lane, need);
            let class = u8::try_from(self.number.vl(lane) - base).unwrap_or(0);
            self.chosen(queue, self.number.link(lane), class, false, now);
            return;
        }
        for lane in ranks.into_iter().flatten() {
            let link = self.number.link(lane);
            if let Some(undecided) = &mut self.undecided {
                undecided.wait(queue, link);
            }
            self.wait_for_room(lane, need);
        }
    }

    /// Has the heads that wait for room on `lane` look again when `need` credits that nobody has in mind will be there, or
    /// when that is decided.
    pub(super) fn wait_for_room(&mut self, lane: u32, need: u32) {
        if let Some(at) = self.lanes.when_unclaimed(lane, need) {
            self.wake(self.number.link(lane), at);
        }
    }

    /// The lane with most unclaimed credits among those of `lanes` that have `need` of them; a draw among equals.
    fn most_room(&mut self, lanes: &[u32], need: u32, now: SimTime, at: NodeId, key: u64) -> Option<u32> {
        let room: Vec<i64> = lanes.iter().map(|lane| self.lanes.unclaimed(*lane, now.0)).collect();
        let most = room.iter().copied().max().filter(|most| *most >= i64::from(need))?;
        let equals: Vec<u32> =
            lanes.iter().zip(room).filter(|(_, room)| *room == most).map(|(lane, _)| *lane).collect();
        let position = if equals.len() > 1 { draw(self.seed, u64::from(at.0), key) % equals.len() as u64 } else { 0 };
        equals.get(usize::try_from(position).unwrap_or(0)).copied()
    }
}
