//! A link with the queue in front of it.

use crate::flit_model::bits;
use netsim::fabric::ethernet::EthernetConfig;
use netsim::network::LinkFigures;
use netsim::time::SimTime;
use netsim::topology::{self, NodeId, Topology};
use netsim::units::{Buffer, Rate};

pub struct Link {
    rate: Rate,
    delay_ps: u64,
    buffer: Buffer,
    burst_ps: u64,
    /// All that it ever took: when each packet began to leave, and its bytes.
    taken: Vec<(SimTime, u32)>,
    /// Since when it has been busy without a gap, and with how many bytes.
    busy_since: SimTime,
    busy_bytes: u64,
    pub drops: u64,
    queue_max_bytes: u64,
}

impl Link {
    pub fn new(config: &EthernetConfig, topology: &Topology, link: &topology::Link) -> Self {
        let is_host = |node: NodeId| node.0 < topology.hosts();
        let extra = if is_host(link.to) { config.host_delay } else { config.switch_delay };
        Self {
            rate: link.rate,
            delay_ps: link.delay_ps + extra.ps(),
            buffer: if is_host(link.from) { config.host_queue } else { link.buffer },
            burst_ps: if link.burst_bytes > 0 { link.rate.time_ps(link.burst_bytes) } else { 0 },
            taken: Vec::new(),
            busy_since: SimTime::ZERO,
            busy_bytes: 0,
            drops: 0,
            queue_max_bytes: 0,
        }
    }

    /// When all that it took has left; with a bucket, when all its tokens are back, less what fills it.
    fn free(&self) -> SimTime {
        let Some(rate) = self.rate.bps() else { return self.busy_since };
        self.busy_since.plus_ps(u64::try_from(bits(self.busy_bytes) / u128::from(rate)).unwrap())
    }

    /// What waits at `now`: the packet on the link does not.
    fn waiting(&self, now: SimTime) -> Vec<u64> {
        self.taken.iter().filter(|(start, _)| *start > now).map(|(_, bytes)| u64::from(*bytes)).collect()
    }

    pub fn has_room(&self, now: SimTime, bytes: u32) -> bool {
        let waiting = self.waiting(now);
        let fits = match self.buffer {
            Buffer::Packets(most) => waiting.len() < most as usize,
            Buffer::Bytes(most) => waiting.iter().sum::<u64>() + u64::from(bytes) <= most,
            Buffer::Unlimited => true,
        };
        self.free() <= now || waiting.is_empty() || fits
    }

    /// When the packet has left, and when it is at the other end.
    pub fn take(&mut self, now: SimTime, bytes: u32) -> (SimTime, SimTime) {
        if self.free() < now {
            (self.busy_since, self.busy_bytes) = (now, 0);
        }
        let free = self.free();
        self.busy_bytes += u64::from(bytes);
        let (start, sent) = match self.burst_ps {
            0 => (free, self.free()),
            burst_ps => {
                let start = SimTime(free.0.saturating_sub(burst_ps)).max(now);
                (start, start)
            }
        };
        self.taken.push((start, bytes));
        self.queue_max_bytes = self.queue_max_bytes.max(self.waiting(now).iter().sum());
        (sent, sent.plus_ps(self.delay_ps))
    }

    /// What a packet takes when nothing else is under way.
    pub fn idle_ps(&self, bytes: u32) -> u64 {
        self.delay_ps + if self.burst_ps > 0 { 0 } else { self.rate.time_ps(bytes.into()) }
    }

    pub fn figures(&self) -> LinkFigures {
        LinkFigures {
            bytes: self.taken.iter().map(|(_, bytes)| u64::from(*bytes)).sum(),
            packets: self.taken.len() as u64,
            drops: self.drops,
            queue_max_bytes: self.queue_max_bytes,
            ..LinkFigures::default()
        }
    }
}
