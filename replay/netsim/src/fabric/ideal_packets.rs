//! `ideal` for packets: each host sends its packets one after the other at the rate, and each arrives a latency after its
//! last bit has left. There are no switches, and nobody is in another's way.

use super::figures::LinkMeter;
use super::ideal::{Ideal, IdealConfig};
use super::packet::{HostLinksDiffer, LinkTime, Message, Observer, PacketFabric, PacketRecord};
use super::{FabricError, FabricKind};
use crate::kernel::{EventQueue, Phase, Place};
use crate::network::{Delivery, NetworkFigures, Simulation, Token};
use crate::time::SimTime;
use crate::topology::HostPlace;
use crate::units::{Bytes, Rate};

/// An ideal network has no packets of its own: these are InfiniBand's, without headers.
const FLIT: Bytes = Bytes(64);
const MTU: Bytes = Bytes(2_048);

#[derive(Clone, Copy)]
struct Arrival {
    packet: PacketRecord,
    last: bool,
}

#[derive(Clone, Copy, Default)]
struct Host {
    free_at: SimTime,
    remainder: u64,
    packets: u64,
}

/// An ideal network of packets.
pub struct IdealPackets<O> {
    rate: Rate,
    latency_ps: u64,
    interval_ps: u64,
    format: LinkTime,
    hosts: Vec<Host>,
    meters: Vec<LinkMeter>,
    queue: EventQueue<Arrival>,
    observer: O,
}

impl<O: Observer> IdealPackets<O> {
    /// The network of `config` for `hosts` hosts.
    #[must_use]
    pub fn new(config: &IdealConfig, hosts: u32, observer: O) -> Self {
        Self {
            format: LinkTime::new(config.rate, FLIT, MTU, Bytes(0)),
            rate: config.rate,
            latency_ps: config.latency.ps(),
            interval_ps: config.interval.ps(),
            hosts: vec![Host::default(); hosts as usize],
            meters: vec![LinkMeter::default(); hosts as usize],
            queue: EventQueue::new(config.latency.ps().clamp(1 << 24, 1 << 40)),
            observer,
        }
    }

    fn arrive(&mut self, arrival: &Arrival) -> Option<Token> {
        let packet = &arrival.packet;
        let meter = &mut self.meters[packet.source.0 as usize];
        meter.crossed(packet.arrived, u64::from(packet.bytes), self.interval_ps);
        self.observer.delivered(packet);
        arrival.last.then_some(arrival.packet.token)
    }
}

impl<O: Observer> Simulation for IdealPackets<O> {
    fn hosts(&self) -> u32 {
        crate::count::count(self.hosts.len())
    }

    fn next_event(&self) -> Option<SimTime> {
        self.queue.next_time()
    }

    fn run_before(&mut self, until: SimTime) {
        let Some(last) = until.0.checked_sub(1) else { return };
        while let Some((_, arrival)) = self.queue.pop_until(SimTime(last)) {
            self.arrive(&arrival);
        }
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        super::instant::collect_instant(
            self,
            until,
            deliveries,
            |network| &mut network.queue,
            |network, at, arrival, out| {
                if let Some(token) = network.arrive(&arrival) {
                    out.push(Delivery { token, at });
                }
            },
        )
    }

    fn events(&self) -> u64 {
        self.queue.processed()
    }

    fn figures(&self) -> NetworkFigures {
        let links = self.meters.iter().enumerate();
        NetworkFigures {
            circuits: Vec::new(),
            events: self.queue.processed(),
            interval_ps: self.interval_ps,
            links: links.map(|(host, meter)| meter.figures(&format!("h{host}->"), self.rate)).collect(),
            ..NetworkFigures::default()
        }
    }
}

impl<O: Observer> PacketFabric<O> for IdealPackets<O> {
    fn send(&mut self, now: SimTime, message: &Message) {
        let index = message.source.0 as usize;
        let mut left = message.bytes;
        loop {
            let payload = left.min(u64::from(self.format.mtu));
            left -= payload;
            // A packet is no longer than mtu and headers, which are 32 bits each.
            let bytes = u32::try_from(payload + u64::from(self.format.headers)).unwrap_or(u32::MAX);
            let host = &mut self.hosts[index];
            if host.free_at < now {
                (host.free_at, host.remainder) = (now, 0);
            }
            let start = host.free_at;
            host.free_at = start.plus_ps(self.rate.next_time_ps(bytes, &mut host.remainder));
            let arrived = host.free_at.plus_ps(self.latency_ps);
            let packet = PacketRecord {
                handed_over: now,
                left: start,
                arrived,
                source: message.source,
                destination: message.destination,
                number: host.packets,
                bytes,
                flits: bytes.div_ceil(self.format.flit.max(1)),
                switches: 0,
                token: message.token,
            };
            host.packets += 1;
            self.queue.schedule(arrived, Phase::Arrive, Place(message.source.0), Arrival { packet, last: left == 0 });
            if left == 0 {
                break;
            }
        }
    }

    fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        Ok(self.format)
    }

    fn lane_bytes(&self, _now: SimTime) -> Vec<u64> {
        self.meters.iter().map(LinkMeter::bytes).collect()
    }
}

impl FabricKind for IdealConfig {
    type Flows = Ideal;
    type Packets<O: Observer> = IdealPackets<O>;

    fn flows(&self, hosts: &[HostPlace]) -> Result<Ideal, FabricError> {
        if hosts.is_empty() { Err(FabricError::NoHosts) } else { Ok(Ideal::new(self, hosts)) }
    }

    fn packets<O: Observer>(&self, hosts: &[HostPlace], observer: O) -> Result<IdealPackets<O>, FabricError> {
        if hosts.is_empty() {
            return Err(FabricError::NoHosts);
        }
        Ok(IdealPackets::new(self, crate::count::count(hosts.len()), observer))
    }

    super::kinds::interval_key! {}
}
