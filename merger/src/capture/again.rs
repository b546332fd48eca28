//! Packets that one file has twice: a recording on all interfaces sees them on a bond and on its slave, on a bridge and
//! on what hangs on it. The first one counts.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;

use foldhash::quality::RandomState;
use trace::packet::PacketView;

/// A packet is on all interfaces of its host within that time; a sender takes longer to send something again.
const WITHIN_NS: u64 = 1_000_000;
/// Packets that are remembered at most.
const REMEMBERED: usize = 1 << 14;

/// The packets of the last millisecond.
#[derive(Default)]
pub(super) struct RecentPackets {
    order: VecDeque<(u64, u64)>,
    last: HashMap<u64, u64, RandomState>,
}

impl RecentPackets {
    /// Tells a packet from all others of its millisecond: what is sent again has another identification (IPv4), or another
    /// time stamp and with it another checksum. Hops to live count down on the way and are left out.
    pub fn fingerprint(&self, packet: &PacketView<'_>, checksum: u16, identification: u16) -> u64 {
        self.last.hasher().hash_one((
            (packet.source, packet.destination, packet.sequence, packet.acknowledgement, packet.flags),
            (packet.window, packet.payload_length, checksum, identification),
        ))
    }

    /// Whether the packet was there within the last millisecond.
    pub fn is_again(&mut self, time_ns: u64, fingerprint: u64) -> bool {
        while let Some(&(at, oldest)) = self.order.front()
            && (at.saturating_add(WITHIN_NS) < time_ns || self.order.len() >= REMEMBERED)
        {
            self.order.pop_front();
            if self.last.get(&oldest) == Some(&at) {
                self.last.remove(&oldest);
            }
        }
        if self.last.get(&fingerprint).is_some_and(|at| at.abs_diff(time_ns) <= WITHIN_NS) {
            return true;
        }
        self.order.push_back((time_ns, fingerprint));
        self.last.insert(fingerprint, time_ns);
        false
    }
}
