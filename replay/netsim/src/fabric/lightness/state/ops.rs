//! What the packet switch knows.

use crate::fabric::ids::PacketId;
use crate::time::SimTime;

/// The packet switch.
#[derive(Default)]
pub struct Ops {
    /// Until when each output port is in use, by rack, fibre and wavelength, and the channel from which that packet came.
    pub busy_until: Vec<SimTime>,
    pub used_by: Vec<u32>,
    /// Packets that are to be decided about, each with the end of its slot.
    pub requests: Vec<(SimTime, PacketId)>,
    /// The last end of a slot for which there is an event.
    pub decides_at: SimTime,
    /// Room for a slot's requests: port, rank, packet.
    pub ranked: Vec<(u32, u64, PacketId)>,
    /// The channel that last passed at each output port.
    pub passed_last: Vec<u32>,
    /// How many packets were decided about.
    pub decided: u64,
    /// For each ToR the passages of its packets that are not over.
    pub passages: Vec<Vec<Passage>>,
}

impl Ops {
    pub fn new(racks: usize, ports: usize) -> Self {
        Self {
            busy_until: vec![SimTime::ZERO; ports],
            used_by: vec![0; ports],
            passed_last: vec![0; ports],
            passages: vec![Vec::new(); racks],
            ..Self::default()
        }
    }
}

/// When a packet passes the packet switch unless it is refused, as its ToR reckons when it starts: from the decision
/// until its output is free again.
#[derive(Clone, Copy)]
pub struct Passage {
    pub id: PacketId,
    pub port: u32,
    pub from: SimTime,
    pub until: SimTime,
}

/// Why a packet is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Every output that it could take is used by its own ToR.
    Own,
    /// An output that it could take is used by another ToR.
    Others,
    /// From its fibre a packet passes to the same fibre.
    SameFibre,
    /// Its destination's ToR has no place for it.
    NoPlace,
    /// It is one of those that are to be dropped.
    Fault,
}

/// How many packets were refused, by the reason.
#[derive(Clone, Copy, Default)]
pub struct Refusals {
    pub own: u64,
    pub others: u64,
    pub same_fibre: u64,
    pub no_place: u64,
    pub faults: u64,
}

impl Refusals {
    pub fn count(&mut self, reason: Refusal) {
        *match reason {
            Refusal::Own => &mut self.own,
            Refusal::Others => &mut self.others,
            Refusal::SameFibre => &mut self.same_fibre,
            Refusal::NoPlace => &mut self.no_place,
            Refusal::Fault => &mut self.faults,
        } += 1;
    }
}
