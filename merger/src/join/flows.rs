//! All flows that hosts saw, in the order of their addresses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use crate::capture::HostCapture;
use crate::capture::flows::FlowKey;
use crate::spilled::{Reader, Record, SharedList, Writer};

/// A flow, and where the hosts that saw it have its packets.
#[derive(Clone, Debug)]
pub(crate) struct ObservedFlow {
    /// Its addresses.
    pub key: FlowKey,
    /// Hosts by number, and the places of the flow among theirs.
    pub hosts: Vec<(usize, usize)>,
}

impl ObservedFlow {
    /// Whether a host saw it.
    pub fn is_of(&self, host: usize) -> bool {
        self.hosts.iter().any(|(other, _)| *other == host)
    }
}

/// All flows, by number.
#[derive(Debug)]
pub(crate) struct ObservedFlows {
    sightings: SharedList<Sighting>,
    /// By flow the place of its first sighting, and behind them how many there are.
    firsts: SharedList<u64>,
}

/// A flow as one host saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sighting {
    key: FlowKey,
    host: u32,
    place: u32,
}

impl Record for Sighting {
    const BLANK: Self = Self { key: FlowKey::BLANK, host: 0, place: 0 };
    const BYTES: usize = FlowKey::BYTES + 2 * 4;

    fn write(&self, out: &mut Writer<'_>) {
        self.key.write(out);
        (self.host, self.place).write(out);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self { key: FlowKey::read(input), host: input.u32(), place: input.u32() }
    }
}

/// Memory that sightings take at most, and their places, bytes.
const MAX_SIGHTINGS_BYTES: usize = 512 << 10;
const MAX_PLACES_BYTES: usize = 64 << 10;

impl ObservedFlows {
    /// Of all hosts.
    ///
    /// # Errors
    /// If a temporary file fails.
    pub fn of(hosts: &[HostCapture]) -> io::Result<Self> {
        let mut sightings = SharedList::within(MAX_SIGHTINGS_BYTES);
        let mut firsts = SharedList::within(MAX_PLACES_BYTES);
        let mut of_hosts: Vec<_> = hosts.iter().map(|host| (0..).zip(host.packets.keys())).collect();
        let mut next_of = |host: u32| {
            let (place, key) = of_hosts[host as usize].next()?;
            Some(Reverse(Sighting { key, host, place }))
        };
        let mut next: BinaryHeap<Reverse<Sighting>> = (0..).take(hosts.len()).filter_map(&mut next_of).collect();
        let mut last = None;
        while let Some(Reverse(sighting)) = next.pop() {
            if last != Some(sighting.key) {
                firsts.push(sightings.len() as u64);
                last = Some(sighting.key);
            }
            sightings.push(sighting);
            next.extend(next_of(sighting.host));
        }
        firsts.push(sightings.len() as u64);
        let flows = Self { sightings, firsts };
        flows.check()?;
        Ok(flows)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.firsts.len() - 1
    }

    /// A flow by its number.
    pub fn get(&self, number: usize) -> ObservedFlow {
        let (first, behind) = (self.firsts.get(number), self.firsts.get(number + 1));
        let seen: Vec<Sighting> = (first..behind).map(|place| self.sightings.get(place as usize)).collect();
        let key = seen.first().map_or(FlowKey::BLANK, |sighting| sighting.key);
        ObservedFlow { key, hosts: seen.iter().map(|seen| (seen.host as usize, seen.place as usize)).collect() }
    }

    /// Whether all could be written and read.
    ///
    /// # Errors
    /// If not, the first error.
    pub fn check(&self) -> io::Result<()> {
        self.sightings.check().and(self.firsts.check())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::collections::BTreeMap;
    use std::net::SocketAddr;

    use trace::packet::{Direction, PacketView, Sack};

    use super::*;

    fn packet(number: u32) -> PacketView<'static> {
        PacketView {
            time_ns: 0,
            direction: Direction::Foreign,
            source: SocketAddr::from(([10, 0, 0, 1], (number % 60_000) as u16)),
            destination: SocketAddr::from(([10, 0, 1, (number / 60_000) as u8], 80)),
            raw_length: 0,
            payload_length: 0,
            sequence: 0,
            acknowledgement: 0,
            flags: 0,
            window: 0,
            sack: Sack::default(),
            payload: &[],
        }
    }

    #[test]
    fn flows_of_all_hosts_are_found_in_their_order_with_those_who_saw_them() {
        let mut hosts: Vec<HostCapture> = (0..3).map(|_| HostCapture::default()).collect();
        let mut expected: BTreeMap<FlowKey, Vec<usize>> = BTreeMap::new();
        // In no order; of some only one host saw packets, of none the third.
        for number in (0..70_000u32).map(|number| number * 33_331 % 70_000) {
            for (host, seen) in [(0, !number.is_multiple_of(5)), (1, number.is_multiple_of(2))] {
                if seen {
                    let packet = packet(number);
                    hosts[host].packets.push(&packet, host, 0).unwrap();
                    expected.entry(FlowKey::of(packet.source, packet.destination, host).0).or_default().push(host);
                }
            }
        }
        hosts.iter_mut().for_each(|host| host.packets.settle().unwrap());
        let keys: Vec<Vec<FlowKey>> = hosts.iter().map(|host| host.packets.keys().collect()).collect();
        let flows = ObservedFlows::of(&hosts).unwrap();
        assert_eq!(flows.len(), expected.len());
        for (number, (key, seen)) in expected.into_iter().enumerate() {
            let flow = flows.get(number);
            assert!(flow.key == key && flow.hosts.iter().map(|(host, _)| *host).eq(seen));
            assert!(flow.hosts.iter().all(|(host, place)| keys[*host][*place] == key));
        }
        assert!(flows.check().is_ok() && ObservedFlows::of(&[]).unwrap().len() == 0);
    }
}
