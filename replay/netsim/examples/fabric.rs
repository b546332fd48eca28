//! A fabric of one's own, under the synthetic traffic of the library: one bus that all hosts share, which takes one packet after
//! the other: `cargo run --release -p netsim --example fabric`.

use std::io::{Write as _, stdout};
use std::sync::atomic::AtomicBool;

use netsim::fabric::ideal::{Ideal, IdealConfig};
use netsim::fabric::packet::{HostLinksDiffer, LinkTime, Message, Observer, PacketFabric, PacketRecord};
use netsim::fabric::{FabricError, FabricKind};
use netsim::kernel::{EventQueue, Phase, Place};
use netsim::network::{Delivery, LinkFigures, NetworkFigures, Simulation};
use netsim::time::SimTime;
use netsim::topology::HostPlace;
use netsim::traffic::{self, RunOptions, TrafficConfig};
use netsim::units::{Bytes, DurationPs, Rate};

const RATE: Rate = Rate::from_bps(10_000_000_000);

/// The keys of a bus.
struct BusConfig {
    interval: DurationPs,
}

/// A bus: packets wait in the order in which they were handed over.
struct Bus<O> {
    hosts: u32,
    free_at: SimTime,
    remainder: u64,
    bytes: u64,
    on_the_way: EventQueue<PacketRecord>,
    observer: O,
}

impl<O: Observer> Simulation for Bus<O> {
    fn hosts(&self) -> u32 {
        self.hosts
    }

    fn next_event(&self) -> Option<SimTime> {
        self.on_the_way.next_time()
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        let Some((at, packet)) = self.on_the_way.pop_until(until) else { return until };
        self.observer.delivered(&packet);
        deliveries.push(Delivery { token: packet.token, at });
        at
    }

    fn figures(&self) -> NetworkFigures {
        let bus = LinkFigures { name: "bus".into(), bytes: self.bytes, ..LinkFigures::default() };
        NetworkFigures { events: self.on_the_way.processed(), links: vec![bus], ..NetworkFigures::default() }
    }
}

impl<O: Observer> PacketFabric<O> for Bus<O> {
    fn send(&mut self, now: SimTime, message: &Message) {
        if self.free_at < now {
            (self.free_at, self.remainder) = (now, 0);
        }
        let bytes = u32::try_from(message.bytes).unwrap_or(u32::MAX);
        let left = self.free_at;
        self.free_at = left.plus_ps(RATE.next_time_ps(bytes, &mut self.remainder));
        self.bytes += message.bytes;
        let packet = PacketRecord {
            handed_over: now,
            left,
            arrived: self.free_at,
            source: message.source,
            destination: message.destination,
            number: message.token.0,
            bytes,
            flits: bytes.div_ceil(64),
            switches: 0,
            token: message.token,
        };
        self.on_the_way.schedule(self.free_at, Phase::Arrive, Place(0), packet);
    }

    fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        let link = LinkTime::new(RATE, Bytes(64), Bytes(1_500), Bytes(0));
        Ok(LinkTime { whole_messages: true, ..link })
    }

    fn lane_bytes(&self, _now: SimTime) -> Vec<u64> {
        vec![self.bytes]
    }
}

impl FabricKind for BusConfig {
    type Flows = Ideal;
    type Packets<O: Observer> = Bus<O>;

    /// For recorded jobs it stands for a network in which nobody is in another's way.
    fn flows(&self, hosts: &[HostPlace]) -> Result<Ideal, FabricError> {
        Ok(Ideal::new(&IdealConfig { rate: RATE, ..IdealConfig::default() }, hosts))
    }

    fn packets<O: Observer>(&self, hosts: &[HostPlace], observer: O) -> Result<Bus<O>, FabricError> {
        let hosts = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
        let on_the_way = EventQueue::new(1 << 30);
        Ok(Bus { hosts, free_at: SimTime::ZERO, remainder: 0, bytes: 0, on_the_way, observer })
    }

    fn interval(&self) -> DurationPs {
        self.interval
    }

    fn set_interval(&mut self, interval: DurationPs) {
        self.interval = interval;
    }
}

/// Poisson arrivals of packets of one length at one server: the mean wait is rho / 2 (1 - rho) of a packet's time.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = BusConfig { interval: DurationPs::from_ms(100) };
    for percent in [20u32, 50, 80] {
        let rho = f64::from(percent) / 100.0;
        // A load is a share of a host's link; ten hosts share the bus.
        let keys = format!(
            "hosts = 10\nsize = \"1500B\"\narrivals = \"exponential\"\nload = {}\nmeasurement = \"200ms\"",
            rho / 10.0
        );
        let traffic: TrafficConfig = keys.parse()?;
        let run = traffic::run_on(&traffic, &config, 1, RunOptions::default(), &AtomicBool::new(false), &mut |_| ())?;
        let packet_ns = 1_200.0;
        let mean_ns = run.figures.packet.mean().unwrap_or_default() / 1_000.0;
        let expected_ns = packet_ns * (1.0 + rho / (2.0 * (1.0 - rho)));
        assert!((mean_ns / expected_ns - 1.0).abs() < 0.05, "{mean_ns} {expected_ns}");
        writeln!(stdout(), "load {percent}%: {mean_ns:.0} ns, by Pollaczek and Khinchine {expected_ns:.0}")?;
    }
    Ok(())
}
