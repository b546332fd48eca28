//! The flows of a host to which no more packets come, in the order of their addresses. Where packets lie in a file, so does what is
//! known of flows.

use std::borrow::Cow;
use std::io;

use super::flows::FlowKey;
use super::observed::{Context, Observed};
use super::spill::{Part, Spill};
use crate::spilled::{Reader, Record, SharedList, Writer};

/// Bytes of one flow on one host, at most: a flow is read as a whole, and its payload is told by 32 bits.
pub(super) const MAX_FLOW_BYTES: u64 = u32::MAX as u64;

/// Memory that is taken of what is known of flows, and of their places, bytes.
const MAX_FLOWS_BYTES: usize = 256 << 10;
const MAX_PLACES_BYTES: usize = 64 << 10;

/// Flows to which no more packets come, in the order of their keys.
#[derive(Clone, Debug)]
pub(super) struct SettledFlows {
    flows: SharedList<SettledFlow>,
    parts: SharedList<Part>,
    /// By flow what lies in memory of it, where anything does.
    held: Vec<Box<[u8]>>,
    /// The places of flows in the order of their first packets.
    arrived: SharedList<u32>,
    /// First and last packet, on the host's clock.
    range_ns: (u64, u64),
}

/// What is known of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SettledFlow {
    key: FlowKey,
    first_part: u64,
    parts: u32,
    packets: u32,
    several_files: bool,
}

impl Record for SettledFlow {
    const BLANK: Self = Self { key: FlowKey::BLANK, first_part: 0, parts: 0, packets: 0, several_files: false };
    const BYTES: usize = FlowKey::BYTES + 8 + 2 * 4 + 1;

    fn write(&self, out: &mut Writer<'_>) {
        self.key.write(out);
        self.first_part.write(out);
        (self.parts, self.packets).write(out);
        out.bytes([u8::from(self.several_files)]);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self {
            key: FlowKey::read(input),
            first_part: input.u64(),
            parts: input.u32(),
            packets: input.u32(),
            several_files: input.u8() != 0,
        }
    }
}

impl Default for SettledFlows {
    fn default() -> Self {
        Self {
            flows: SharedList::within(MAX_FLOWS_BYTES),
            parts: SharedList::within(MAX_PLACES_BYTES),
            held: Vec::new(),
            arrived: SharedList::within(MAX_PLACES_BYTES),
            range_ns: (u64::MAX, 0),
        }
    }
}

impl SettledFlows {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// First and last packet, on the host's clock.
    pub fn range_ns(&self) -> (u64, u64) {
        self.range_ns
    }

    /// Their keys.
    pub fn keys(&self) -> impl Iterator<Item = FlowKey> {
        self.flows.iter().map(|flow| flow.key)
    }

    /// Takes the next one in, with the times of its first and of its last packet.
    pub fn push(&mut self, flow: StoredFlow<'_>, (first_ns, last_ns): (u64, u64)) {
        let StoredFlow { key, parts, bytes, packets, several_files } = flow;
        let (first_part, place) = (self.parts.len() as u64, self.flows.len());
        parts.iter().for_each(|part| self.parts.push(*part));
        if !bytes.is_empty() {
            self.held.resize_with(place + 1, Box::default);
            self.held[place] = bytes.into();
        }
        self.flows.push(SettledFlow { key, first_part, parts: parts.len() as u32, packets, several_files });
        self.range_ns = (self.range_ns.0.min(first_ns), self.range_ns.1.max(last_ns));
    }

    /// All are there; `arrived` are their places in the order of their first packets.
    pub fn end(&mut self, arrived: Vec<u32>) {
        self.held.shrink_to_fit();
        arrived.into_iter().for_each(|place| self.arrived.push(place));
    }

    /// A flow.
    ///
    /// # Errors
    /// If where it lies cannot be read.
    pub fn get(&self, place: usize) -> io::Result<StoredFlow<'_>> {
        self.flow(place, Cow::Borrowed(self.held.get(place).map_or(&[][..], |bytes| bytes)))
    }

    /// As [`SettledFlows::get`], for the last time: what lies in memory of it is given up.
    ///
    /// # Errors
    /// As [`SettledFlows::get`].
    pub fn take(&mut self, place: usize) -> io::Result<StoredFlow<'static>> {
        let held = self.held.get_mut(place).map(std::mem::take).unwrap_or_default();
        self.flow(place, Cow::Owned(held.into()))
    }

    /// All of them in the order of their first packets.
    pub fn in_order_of_arrival(&self) -> impl Iterator<Item = io::Result<StoredFlow<'_>>> {
        self.arrived.iter().map(|place| self.get(place as usize))
    }

    fn flow<'b>(&self, place: usize, bytes: Cow<'b, [u8]>) -> io::Result<StoredFlow<'b>> {
        let SettledFlow { key, first_part, parts, packets, several_files } = self.flows.get(place);
        let parts = (first_part..first_part + u64::from(parts)).map(|part| self.parts.get(part as usize)).collect();
        self.check()?;
        Ok(StoredFlow { key, parts, bytes, packets, several_files })
    }

    /// Whether all could be written and read.
    ///
    /// # Errors
    /// If not, the first error.
    pub fn check(&self) -> io::Result<()> {
        self.flows.check().and(self.parts.check()).and(self.arrived.check())
    }
}

/// Bytes of parts.
pub(super) fn spilled(parts: &[Part]) -> u64 {
    parts.iter().map(|(_, length)| u64::from(*length)).sum()
}

/// A flow to which no more packets come.
#[derive(Clone, Debug)]
pub(super) struct StoredFlow<'b> {
    pub key: FlowKey,
    /// Parts in the files, in order.
    pub parts: Vec<Part>,
    /// What follows on them.
    pub bytes: Cow<'b, [u8]>,
    pub packets: u32,
    pub several_files: bool,
}

impl StoredFlow<'_> {
    /// Its packets as they came, some of them from temporary files.
    pub fn read(&self, spill: &Spill) -> io::Result<FlowPackets> {
        let spilled = spilled(&self.parts);
        if spilled + self.bytes.len() as u64 > MAX_FLOW_BYTES {
            return Err(too_much(&self.key));
        }
        let spilled = usize::try_from(spilled).map_err(io::Error::other)?;
        let mut kept = Vec::with_capacity(spilled + self.bytes.len());
        kept.resize(spilled, 0);
        let mut rest = kept.as_mut_slice();
        for &(at, length) in &self.parts {
            let (part, behind) = rest.split_at_mut(length as usize);
            spill.read_exact_at(part, at)?;
            rest = behind;
        }
        kept.extend_from_slice(&self.bytes);
        let mut packets = Vec::with_capacity(self.packets as usize);
        let (mut context, mut at) = (Context::default(), 0);
        while let Some(packet) = context.read(&kept, &mut at) {
            packets.push(packet);
        }
        Ok(FlowPackets { packets, kept })
    }

    /// Its packets by time, without copies.
    pub fn in_order(&self, spill: &Spill) -> io::Result<FlowPackets> {
        let mut flow = self.read(spill)?;
        // To ask is quicker than to sort what is sorted.
        if !flow.packets.is_sorted_by_key(|packet| packet.time_ns) {
            flow.packets.sort_by_key(|packet| packet.time_ns);
        }
        if self.several_files {
            drop_copies(&mut flow.packets);
        }
        Ok(flow)
    }

    /// How many of its packets are copies, and when the last that is none came.
    pub fn copies(&self, spill: &Spill) -> io::Result<(u64, u64)> {
        let mut packets = self.read(spill)?.packets;
        packets.sort_by_key(|packet| packet.time_ns);
        let copies = drop_copies(&mut packets);
        Ok((copies, packets.last().map_or(0, |packet| packet.time_ns)))
    }
}

/// The packets of one flow as one host saw them, by themselves: they go when they have been read for the last time.
#[derive(Debug)]
pub(crate) struct LoneFlow {
    pub(super) flow: StoredFlow<'static>,
    pub(super) spill: Spill,
}

impl LoneFlow {
    /// As [`Packets::flow`](super::store::Packets::flow).
    ///
    /// # Errors
    /// If what was written cannot be read.
    pub fn packets(&self) -> io::Result<FlowPackets> {
        self.flow.in_order(&self.spill)
    }
}

/// The packets of one flow as one host saw them, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct FlowPackets {
    /// Packets.
    pub packets: Vec<Observed>,
    pub(super) kept: Vec<u8>,
}

impl FlowPackets {
    /// The kept payload of a packet.
    #[must_use]
    pub fn payload(&self, packet: &Observed) -> &[u8] {
        let start = packet.kept_start as usize;
        self.kept.get(start..start.saturating_add(usize::from(packet.kept_length))).unwrap_or(&[])
    }
}

pub(super) fn too_much(key: &FlowKey) -> io::Error {
    let (low, high) = (key.low(), key.high());
    io::Error::other(format!(
        "more than 4 GiB of packets between {low} and {high}; record less of each (tcpdump -s 128)"
    ))
}

fn drop_copies(packets: &mut Vec<Observed>) -> u64 {
    const APART_NS: u64 = 1_000_000;
    /// More packets of one connection do not come within that time.
    const MAX_CANDIDATES: usize = 4096;
    let before = packets.len();
    let mut kept: Vec<Observed> = Vec::with_capacity(before);
    for packet in packets.iter() {
        let copy = kept
            .iter()
            .rev()
            .take(MAX_CANDIDATES)
            .take_while(|earlier| packet.time_ns - earlier.time_ns <= APART_NS)
            .any(|earlier| earlier.file != packet.file && same_header(earlier, packet));
        if !copy {
            kept.push(*packet);
        }
    }
    *packets = kept;
    (before - packets.len()) as u64
}

fn same_header(a: &Observed, b: &Observed) -> bool {
    (a.forward, a.sequence, a.acknowledgement, a.payload_length, a.window, a.flags)
        == (b.forward, b.sequence, b.acknowledgement, b.payload_length, b.window, b.flags)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;
    use crate::spilled::read_back;

    fn flow(number: u32, parts: Vec<(u64, u32)>, bytes: &[u8]) -> StoredFlow<'_> {
        let address = |host: u8| SocketAddr::from(([10, 0, host, (number >> 16) as u8], number as u16));
        let (key, _) = FlowKey::of(address(1), address(2), 0);
        let several_files = number.is_multiple_of(3);
        StoredFlow { key, parts, bytes: bytes.into(), packets: number, several_files }
    }

    fn told(flow: &StoredFlow<'_>) -> (FlowKey, Vec<(u64, u32)>, Vec<u8>, u32, bool) {
        (flow.key, flow.parts.clone(), flow.bytes.to_vec(), flow.packets, flow.several_files)
    }

    #[test]
    fn flows_are_found_by_place_and_in_the_order_in_which_they_came() {
        let count = 20_000;
        let part = |number: u32| (0..number % 4).map(|part| (u64::from(number) << 8, part)).collect::<Vec<_>>();
        // Every fifth has something in memory.
        let bytes = |number: u32| number.is_multiple_of(5).then(|| number.to_le_bytes()).map_or(Vec::new(), Vec::from);
        let mut flows = SettledFlows::default();
        for number in 0..count {
            let time_ns = u64::from(number);
            flows.push(flow(number, part(number), &bytes(number)), (1_000_000 - time_ns, 2_000_000 + time_ns));
        }
        let arrived: Vec<u32> = (0..count).map(|number| number * 7_919 % count).collect();
        flows.end(arrived.clone());
        assert_eq!((flows.len(), flows.range_ns()), (count as usize, (980_001, 2_019_999)));
        assert!(flows.keys().is_sorted() && flows.keys().count() == count as usize);
        let expected = |number: u32| told(&flow(number, part(number), &bytes(number)));
        let in_order = flows.in_order_of_arrival().zip(&arrived);
        assert!(in_order.into_iter().all(|(found, number)| told(&found.unwrap()) == expected(*number)));
        for number in [0, 1, 9_999, 10_000, count - 1, 5] {
            assert_eq!(told(&flows.get(number as usize).unwrap()), expected(number));
            assert_eq!(told(&flows.take(number as usize).unwrap()), expected(number));
            assert!(flows.get(number as usize).unwrap().bytes.is_empty());
        }
    }

    proptest! {
        #[test]
        fn records_are_read_as_they_were_written(
            (first_part, parts, packets, several_files) in any::<(u64, u32, u32, bool)>(), ports in any::<(u16, u16)>(),
            host in 0usize..3, low in prop_oneof![Just("127.0.0.1"), Just("10.0.0.1"), Just("fd00::1")],
        ) {
            let address = |ip: &str, port: u16| SocketAddr::new(ip.parse().unwrap(), port);
            let (key, _) = FlowKey::of(address(low, ports.0), address("10.1.0.1", ports.1), host);
            let flow = SettledFlow { key, first_part, parts, packets, several_files };
            prop_assert_eq!(read_back(&flow), flow);
        }
    }
}
