//! Clocked switches as a packet fabric: what is the same for each kind of them.

use crate::fabric::cycle::Cycle;
use crate::fabric::figures::LinkMeter;
use crate::fabric::hop_log::HopLog;
use crate::fabric::hop_records::{HopRecords, LogWanted};
use crate::fabric::messages::Messages;
use crate::fabric::occupancy::Occupancy;
use crate::fabric::packet::{HostLinksDiffer, LinkTime, Message, Observer, PacketFabric, host_rate};
use crate::network::{Delivery, HostIndex, NetworkFigures, Simulation};
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId, Topology};
use crate::units::DurationPs;
use typed_index_collections::TiVec;

/// What a clocked network is built of, and what it has counted.
pub(in crate::fabric) struct Parts<'a> {
    pub topology: &'a Topology,
    pub clock: &'a LinkTime,
    pub messages: &'a Messages,
    /// Queues of messages of each host: those of a node lie next to each other.
    pub queues: usize,
    /// Virtual channels or lanes of each link.
    pub lanes: u32,
    pub meters: &'a TiVec<LinkId, LinkMeter>,
    pub interval: DurationPs,
    pub delivered: u64,
    pub events: u64,
    /// What lies in the queues at the ends of its links, by link, then lane, in cycles; `None` where that is not counted.
    pub occupancy: Option<&'a Occupancy>,
}

/// A clocked network: in each cycle first what arrives is seen, then hosts and switches work.
pub(in crate::fabric) trait ClockedNetwork {
    /// What sees its packets.
    type Observer: Observer;

    fn parts(&self) -> Parts<'_>;

    fn observer_mut(&mut self) -> &mut Self::Observer;

    /// The next cycle in which anything happens.
    fn next_cycle(&self) -> Option<u64>;

    /// The cycle whose arrivals have been seen and in which nobody has worked yet.
    fn open_cycle(&self) -> Option<u64>;

    /// Sees the arrivals of the next cycle, if it is not later than `until`. Returns it.
    fn arrive(&mut self, until: u64, deliveries: &mut Vec<Delivery>) -> Option<u64>;

    /// Has hosts and switches work in the open cycle, if there is one.
    fn work(&mut self);

    /// `message` is handed over to `host` at `now`, and counts from `cycle` on; none before it is open.
    fn hand_over(&mut self, now: SimTime, message: &Message, host: NodeId, cycle: u64);

    /// The first cycle that does not begin before `time`.
    fn cycle_from(&mut self, time: SimTime) -> u64 {
        Cycle::from(time, self.parts().clock).0
    }

    /// As [`PacketFabric::lane_bytes`].
    fn bytes_of_lanes(&self) -> Vec<u64>;

    /// Adds to the `meter` of `link` what has crossed that and is not counted there yet.
    fn add_unmetered(&self, link: LinkId, meter: &mut LinkMeter) {
        let _ = (link, meter);
    }

    /// As [`PacketFabric::lose_blocked_heads`].
    fn lose_heads(&mut self) -> bool {
        false
    }

    /// Where the ways of packets are logged, if they can be.
    fn hop_log_slot(&mut self) -> Option<&mut Option<Box<HopLog>>> {
        None
    }

    /// Where what lies in queues is counted, if it can be.
    fn occupancy_slot(&mut self) -> Option<&mut Option<Box<Occupancy>>> {
        None
    }
}

impl<N: ClockedNetwork> Simulation for N {
    fn hosts(&self) -> u32 {
        self.parts().topology.hosts()
    }

    fn next_event(&self) -> Option<SimTime> {
        self.next_cycle().map(|cycle| Cycle(cycle).begins(self.parts().clock))
    }

    fn run_before(&mut self, until: SimTime) {
        let Some(last) = until.0.checked_sub(1) else { return };
        let last = Cycle::until(SimTime(last), self.parts().clock).0;
        let mut deliveries = Vec::new();
        while self.arrive(last, &mut deliveries).is_some() {
            self.work();
            deliveries.clear();
        }
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        let before = deliveries.len();
        let last = Cycle::until(until, self.parts().clock).0;
        while let Some(cycle) = self.arrive(last, deliveries) {
            if deliveries.len() > before {
                deliveries[before..].sort_by_key(|delivery| delivery.token.0);
                return Cycle(cycle).begins(self.parts().clock);
            }
            self.work();
        }
        until
    }

    fn events(&self) -> u64 {
        self.parts().events
    }

    fn figures(&self) -> NetworkFigures {
        let Parts { topology, meters, interval, delivered, events, .. } = self.parts();
        let links = topology.links().iter().zip(meters.iter_enumerated());
        let links = links.map(|(link, (id, meter))| {
            let mut meter = meter.clone();
            self.add_unmetered(id, &mut meter);
            meter.figures(&topology.link_name(id), link.rate)
        });
        NetworkFigures {
            events,
            interval_ps: interval.ps(),
            links: links.collect(),
            counters: vec![("packets delivered".to_owned(), delivered)],
            ..NetworkFigures::default()
        }
    }
}

impl<O: Observer, N: ClockedNetwork<Observer = O>> PacketFabric<O> for N {
    fn send(&mut self, now: SimTime, message: &Message) {
        let (host, cycle) = (self.parts().topology.host_node(message.source.0), self.cycle_from(now));
        if self.open_cycle().is_some_and(|open| cycle > open) {
            self.work();
        }
        self.hand_over(now, message, host, cycle);
    }

    fn observer(&mut self) -> &mut O {
        self.observer_mut()
    }

    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        let Parts { topology, clock, .. } = self.parts();
        host_rate(topology)?;
        Ok(*clock)
    }

    fn waits_more_than(&self, host: HostIndex, most: u64) -> Option<bool> {
        let Parts { topology, messages, queues, .. } = self.parts();
        let first = topology.host_node(host.0).0 as usize * queues;
        let waiting = (first..first + queues).map(|queue| messages.waiting(queue));
        Some(waiting.fold(0, u64::saturating_add) > most)
    }

    fn lose_blocked_heads(&mut self) -> bool {
        self.lose_heads()
    }

    fn count_occupancy(&mut self) -> bool {
        let Parts { topology, lanes, .. } = self.parts();
        let queues = topology.links().len() * lanes as usize;
        let Some(occupancy) = self.occupancy_slot() else { return false };
        *occupancy = Some(Box::new(Occupancy::new(queues)));
        true
    }

    fn occupancy_times(&self, now: SimTime) -> Vec<Vec<u64>> {
        let Parts { occupancy, clock, .. } = self.parts();
        occupancy.map(|occupancy| occupancy.times(Cycle::from(now, clock).0)).unwrap_or_default()
    }

    fn log_hops(&mut self, wanted: &LogWanted) -> bool {
        let Some(log) = self.hop_log_slot() else { return false };
        *log = Some(Box::new(HopLog::new(wanted.clone())));
        true
    }

    fn take_hop_log(&mut self, end: SimTime) -> Option<HopRecords> {
        let log = self.hop_log_slot()?.take()?;
        Some(log.finish(self.parts().topology, end))
    }

    fn lanes(&self) -> u32 {
        self.parts().lanes
    }

    fn lane_bytes(&self, _now: SimTime) -> Vec<u64> {
        self.bytes_of_lanes()
    }
}
