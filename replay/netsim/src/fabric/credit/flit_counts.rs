//! Flits of lanes one by one: how many of them have left this end, and how many the buffer at the other end. Kept only where somebody
//! compares lanes or queues by flits.

use super::link_timing::LinkTiming;
use super::returns::Return;
use crate::fabric::ids::LaneId;
use crate::time::SimTime;
use typed_index_collections::TiVec;

/// The flits of a lane.
#[derive(Clone, Copy)]
struct FlitCount {
    /// Those of all packets that have started.
    started: u64,
    /// Those of packets that have left the buffer at its end, as far as that was counted.
    gone: u64,
    /// When the last of these packets had left.
    gone_at: SimTime,
    /// The last packet that has started.
    last: Option<Return>,
}

/// The flits of all lanes; of none if nobody asks.
pub(super) struct FlitCounts(TiVec<LaneId, FlitCount>);

/// Flits of `packet` that have left by `at`.
fn left_by(packet: &Return, timing: &LinkTiming, at: SimTime) -> u64 {
    if packet.end <= at {
        packet.flits.into()
    } else if packet.start < at {
        timing.flits_by(at - packet.start, packet.rest)
    } else {
        0
    }
}

/// When the next flit of `packet` leaves behind `at`.
fn next_behind(packet: &Return, timing: &LinkTiming, at: SimTime) -> Option<SimTime> {
    if packet.end <= at {
        return None;
    }
    let next = u32::try_from(left_by(packet, timing, at) + 1).unwrap_or(u32::MAX);
    let leaves =
        if next < u32::from(packet.flits) { packet.start + timing.time(next, packet.rest) } else { packet.end };
    Some(leaves)
}

impl FlitCounts {
    /// Nothing on any of `lanes` lanes.
    pub fn new(lanes: usize) -> Self {
        let none = FlitCount { started: 0, gone: 0, gone_at: SimTime::ZERO, last: None };
        Self(vec![none; lanes].into())
    }

    /// Whether flits are counted.
    #[inline]
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// `packet` starts on `lane`.
    #[inline]
    pub fn starts(&mut self, lane: LaneId, packet: Return) {
        if let Some(count) = self.0.get_mut(lane) {
            count.started += u64::from(packet.flits);
            count.last = Some(packet);
        }
    }

    /// `packet` has left the buffer of `lane`, and its sender knows it.
    #[inline]
    pub fn has_gone(&mut self, lane: LaneId, packet: &Return) {
        if let Some(count) = self.0.get_mut(lane) {
            count.gone += u64::from(packet.flits);
            count.gone_at = packet.end;
        }
    }

    /// Flits of `lane` that belong to packets which have started, less those that had left the buffer at its end by `by`: all of the packets
    /// that were counted as gone, and what the first of the others, `leaving`, has left.
    pub fn outstanding(
        &self,
        lane: LaneId,
        leaving: impl Iterator<Item = Return>,
        wires: &[LinkTiming],
        by: SimTime,
    ) -> u64 {
        let Some(count) = self.0.get(lane) else { return 0 };
        // A packet that was counted may have left behind `by`: by a flit at most.
        let not_yet = u64::from(count.gone > 0 && count.gone_at > by);
        let left = leaving.map(|packet| left_by(&packet, &wires[usize::from(packet.timing)], by)).sum::<u64>();
        count.started + not_yet - count.gone - left
    }

    /// Flits of packets that have started on `lane` and that have not left this end by `now`.
    pub fn unsent(&self, lane: LaneId, wires: &[LinkTiming], now: SimTime) -> u64 {
        let last = self.0.get(lane).and_then(|count| count.last);
        last.map_or(0, |packet| u64::from(packet.flits) - left_by(&packet, &wires[usize::from(packet.timing)], now))
    }

    /// When the next flit behind `now` leaves this end of `lane`.
    pub fn next_sent(&self, lane: LaneId, wires: &[LinkTiming], now: SimTime) -> Option<SimTime> {
        let packet = self.0.get(lane)?.last?;
        next_behind(&packet, &wires[usize::from(packet.timing)], now)
    }

    /// When the next flit of `leaving`, the first packet that leaves the buffer of a lane, has left it behind `by`.
    pub fn next_gone(leaving: &Return, wires: &[LinkTiming], by: SimTime) -> Option<SimTime> {
        next_behind(leaving, &wires[usize::from(leaving.timing)], by)
    }
}
