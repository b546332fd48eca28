//! A `rotor` fabric as what drives it sees it.

use super::{Rotor, RotorConfig};
use crate::count::count;
use crate::fabric::figures::LinkMeter;
use crate::fabric::flows::Flows;
use crate::fabric::packet::{HostLinksDiffer, LinkTime, Message, Observer, PacketFabric};
use crate::fabric::{FabricError, FabricKind, Places, instant};
use crate::network::{Delivery, NetworkFigures, Simulation};
use crate::time::SimTime;
use crate::topology::HostPlace;

impl<O: Observer> Simulation for Rotor<O> {
    fn hosts(&self) -> u32 {
        count(self.hosts.len())
    }

    fn next_event(&self) -> Option<SimTime> {
        self.events.next_time()
    }

    fn run_before(&mut self, until: SimTime) {
        let Some(last) = until.0.checked_sub(1) else { return };
        let mut deliveries = Vec::new();
        while let Some((now, event)) = self.events.pop_until(SimTime(last)) {
            self.happen(now, event, &mut deliveries);
            deliveries.clear();
        }
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        instant::collect_instant(self, until, deliveries, |network| &mut network.events, Self::happen)
    }

    fn events(&self) -> u64 {
        self.events.processed()
    }

    fn figures(&self) -> NetworkFigures {
        let mut links = Vec::new();
        for (host, name) in self.names.iter().enumerate() {
            let rack = &self.racks[self.rack_of[host] as usize];
            links.push(self.up[host].figures(&format!("{name}->{rack}"), self.config.host_rate));
            links.push(self.down[host].figures(&format!("{rack}->{name}"), self.config.host_rate));
        }
        let switches = self.schedule.switches() as usize;
        for (index, meter) in self.over.iter().enumerate() {
            let name = format!("{}->rotor{}", self.racks[index / switches], index % switches);
            links.push(meter.figures(&name, self.config.uplink_rate));
        }
        let (circuits, circuit_totals) = self.circuits.figures(self.now, &self.racks);
        NetworkFigures {
            events: self.events.processed(),
            circuits,
            circuit_totals,
            drops: self.counters.lost(),
            retransmissions: self.counters.lost(),
            interval_ps: self.config.interval.ps(),
            links,
            counters: self.counters.named(self.control.is_some()),
        }
    }
}

impl<O: Observer> PacketFabric<O> for Rotor<O> {
    fn send(&mut self, now: SimTime, message: &Message) {
        self.hand_over(now, message, message.bytes);
    }

    fn send_part(&mut self, now: SimTime, message: &Message, of_bytes: u64) {
        self.hand_over(now, message, of_bytes);
    }

    fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        Ok(LinkTime::new(self.config.host_rate, self.config.flit, self.config.mtu, self.config.headers))
    }

    fn lane_bytes(&self, _now: SimTime) -> Vec<u64> {
        let hosts = self.up.iter().zip(&self.down).flat_map(|(up, down)| [up.bytes(), down.bytes()]);
        hosts.chain(self.over.iter().map(LinkMeter::bytes)).collect()
    }
}

impl FabricKind for RotorConfig {
    type Flows = Flows<Rotor<()>>;
    type Packets<O: Observer> = Rotor<O>;

    fn flows(&self, hosts: &[HostPlace]) -> Result<Self::Flows, FabricError> {
        Ok(Flows::new(Rotor::new(self, hosts, ())?, self.loopback))
    }

    fn packets<O: Observer>(&self, hosts: &[HostPlace], observer: O) -> Result<Rotor<O>, FabricError> {
        Rotor::new(self, hosts, observer)
    }

    crate::fabric::kinds::interval_key! {}

    fn places(&self) -> Places {
        Places { hosts: None, racks: None, apart: true }
    }
}
