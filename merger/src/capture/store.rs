//! The packets of one host, gathered by the two addresses between which they went: packed in memory, and beyond a limit
//! in a temporary file, from which each flow is read by itself.

use std::io::{self, Write as _};

use trace::packet::{PacketView, PlainPacket};

use super::flows::{FlowKey, canonical};
use super::growing::GrowingFlows;
use super::observed::{MAX_HEAD, Observed, kept};
use super::recent::Recent;
use super::settled::{FlowPackets, LoneFlow, MAX_FLOW_BYTES, SettledFlows, StoredFlow, too_much};
use super::spill::Spill;

/// Memory that the packets of a host may take where nobody says, bytes.
const DEFAULT_LIMIT: u64 = 1 << 30;
/// What a flow takes beside its packets, bytes.
const FLOW_BYTES: u64 = 220;

/// The packets of one host.
#[derive(Clone, Debug)]
pub struct Packets {
    /// Flows to which packets come.
    flows: GrowingFlows,
    /// Flows to which no more packets come.
    settled: SettledFlows,
    /// The flow of the packet before, and its key.
    last: Option<(FlowKey, u32)>,
    recent: Recent,
    /// Bytes of packets in memory, and how many may be.
    held: u64,
    limit: u64,
    spill: Spill,
    /// Packets read.
    pub count: u64,
    /// Copies of packets that were seen on another interface too, left out.
    pub copies: u64,
}

impl Default for Packets {
    fn default() -> Self {
        Self::within(DEFAULT_LIMIT)
    }
}

impl Packets {
    /// None yet; of those that come, no more than `limit` bytes are held in memory.
    #[must_use]
    pub fn within(limit: u64) -> Self {
        Self {
            flows: GrowingFlows::default(),
            settled: SettledFlows::default(),
            last: None,
            recent: Recent::default(),
            held: 0,
            limit: limit.min(MAX_FLOW_BYTES / 2),
            spill: Spill::default(),
            count: 0,
            copies: 0,
        }
    }

    /// Takes in a packet that host number `host` saw, read from its file number `file`.
    ///
    /// # Errors
    /// If packets have to leave memory, and there is no room for them on the disk either; or if one flow has more than 4 GiB.
    #[inline]
    pub fn push(&mut self, packet: &PacketView<'_>, host: usize, file: u16) -> io::Result<()> {
        if let Some((number, forward)) = self.recent.find(packet) {
            return self.add(number, &Observed::of(packet, forward, file), kept(packet.payload, packet.payload_length));
        }
        let (source, destination) = (canonical(packet.source), canonical(packet.destination));
        let (key, forward) = FlowKey::of(source, destination, host);
        let observed = Observed::of(packet, forward, file);
        let number = self.number_of(key, &observed)?;
        self.recent.keep(packet, number, forward);
        self.add(number, &observed, kept(packet.payload, packet.payload_length))
    }

    /// As [`Packets::push`], of a plain packet, as nearly all are.
    ///
    /// # Errors
    /// As [`Packets::push`].
    #[inline]
    pub fn push_plain(&mut self, packet: &PlainPacket<'_>, host: usize, file: u16) -> io::Result<()> {
        let Some((number, forward)) = self.recent.find_plain(packet) else {
            return self.push(&packet.view(), host, file);
        };
        let observed = Observed::of_plain(packet, forward, file);
        self.add(number, &observed, kept(packet.payload, packet.payload_length))
    }

    /// Takes in a packet whose flow is known.
    ///
    /// # Errors
    /// As [`Packets::push`].
    #[inline]
    pub(super) fn take(&mut self, key: FlowKey, packet: &Observed, kept: &[u8]) -> io::Result<()> {
        let number = match self.last {
            Some((last, number)) if last == key => number,
            _ => self.number_of(key, packet)?,
        };
        self.add(number, packet, kept)
    }

    #[inline]
    fn add(&mut self, number: u32, packet: &Observed, kept: &[u8]) -> io::Result<()> {
        let flow = self.flows.get_mut(number);
        let (room, more) = flow.bytes.room(MAX_HEAD + kept.len());
        flow.context.write(room, packet, kept);
        flow.packets += 1;
        flow.several_files |= flow.file != packet.file;
        flow.first_ns = flow.first_ns.min(packet.time_ns);
        flow.last_ns = flow.last_ns.max(packet.time_ns);
        self.held += more as u64;
        self.count += 1;
        if self.held > self.limit { self.spill() } else { Ok(()) }
    }

    fn number_of(&mut self, key: FlowKey, first: &Observed) -> io::Result<u32> {
        if self.settled.len() > 0 {
            self.reopen()?;
        }
        let before = self.flows.len();
        let number = self.flows.number_of(key, first.file);
        self.held += FLOW_BYTES * (self.flows.len() - before) as u64;
        self.last = Some((key, number));
        Ok(number)
    }

    /// Lets packets come again to flows that were settled.
    fn reopen(&mut self) -> io::Result<()> {
        let settled = std::mem::replace(self, Self { copies: self.copies, ..Self::within(self.limit) });
        settled.stored().try_for_each(|flow| {
            let (key, flow) = flow?;
            flow.packets.iter().try_for_each(|packet| self.take(key, packet, flow.payload(packet)))
        })
    }

    /// Writes all that is in memory to a file.
    fn spill(&mut self) -> io::Result<()> {
        let flows = &mut self.flows;
        self.spill.append(|appending, first, begin| {
            let mut out = io::BufWriter::with_capacity(1 << 20, appending);
            let mut end = first;
            for flow in flows.iter_mut().filter(|flow| flow.bytes.len() > 0) {
                let length = u32::try_from(flow.bytes.len()).map_err(io::Error::other)?;
                if flow.spilled() + u64::from(length) > MAX_FLOW_BYTES {
                    return Err(too_much(&flow.key));
                }
                flow.bytes.iter().try_for_each(|chunk| out.write_all(chunk))?;
                flow.add_part((end, length), begin);
                end += u64::from(length);
                flow.bytes.clear();
            }
            out.flush()?;
            Ok(end - first)
        })?;
        self.held = self.flows.len() as u64 * FLOW_BYTES;
        // What flows take by themselves cannot leave memory: a limit below that would write packet by packet.
        self.limit = self.limit.max(2 * self.held);
        Ok(())
    }

    /// Adds what another file of the same host held.
    ///
    /// # Errors
    /// As [`Packets::push`].
    pub fn append(&mut self, other: Self) -> io::Result<()> {
        if self.flow_count() == 0 {
            let limit = self.limit;
            *self = Self { limit, copies: self.copies + other.copies, ..other };
            return Ok(());
        }
        self.copies += other.copies;
        other.stored().try_for_each(|flow| {
            let (key, flow) = flow?;
            flow.packets.iter().try_for_each(|packet| self.take(key, packet, flow.payload(packet)))
        })
    }

    /// No more packets come. Counts copies: the same packet seen on two interfaces (a bridge and its port) within a millisecond. A packet
    /// that was sent twice is seen twice on one interface. Gives back what only helps to take packets in.
    ///
    /// # Errors
    /// If what was written cannot be read, or all of a host of which a part lies in a file cannot be written to it.
    pub fn settle(&mut self) -> io::Result<()> {
        if self.flows.len() == 0 {
            return Ok(());
        }
        if !self.spill.is_empty() {
            self.spill()?;
        }
        (self.recent, self.last) = (Recent::default(), None);
        let mut flows = std::mem::take(&mut self.flows);
        flows.settle();
        let mut numbers: Vec<u32> = (0..).take(flows.len()).collect();
        numbers.sort_unstable_by_key(|number| flows.get(*number).key);
        let mut places = vec![0; flows.len()];
        for (place, number) in (0..).zip(numbers) {
            let flow = flows.get_mut(number);
            let (stored, mut range_ns) = (flow.settled(), (flow.first_ns, flow.last_ns));
            if stored.several_files {
                let (copies, last_ns) = stored.copies(&self.spill)?;
                self.copies += copies;
                range_ns.1 = last_ns;
            }
            self.settled.push(stored, range_ns);
            places[number as usize] = place;
        }
        self.settled.end(places);
        self.settled.check()
    }

    /// How many flows there are.
    pub fn flow_count(&self) -> usize {
        self.flows.len() + self.settled.len()
    }

    /// The keys of flows to which no more packets come, in their order: that of [`Packets::flow`].
    pub fn keys(&self) -> impl Iterator<Item = FlowKey> {
        self.settled.keys()
    }

    /// Each flow and its packets as they came, in the order of their first ones.
    pub(super) fn stored(&self) -> impl Iterator<Item = io::Result<(FlowKey, FlowPackets)>> {
        let spill = &self.spill;
        let growing = self.flows.iter().map(|flow| flow.clone().settled());
        let flows = growing.map(Ok).chain(self.settled.in_order_of_arrival());
        flows.map(move |flow: io::Result<StoredFlow<'_>>| flow.and_then(|flow| Ok((flow.key, flow.read(spill)?))))
    }

    /// First and last packet, on the host's clock.
    #[must_use]
    pub fn range_ns(&self) -> (u64, u64) {
        let growing = self.flows.iter().map(|flow| (flow.first_ns, flow.last_ns));
        growing.fold(self.settled.range_ns(), |(first, last), flow| (first.min(flow.0), last.max(flow.1)))
    }

    /// The packets of a flow by time, without copies, when no more come ([`Packets::settle`]); flows by their places among
    /// [`Packets::keys`].
    ///
    /// # Errors
    /// If what was written cannot be read.
    pub fn flow(&self, place: usize) -> io::Result<FlowPackets> {
        self.settled.get(place)?.in_order(&self.spill)
    }

    /// As [`Packets::flow`], for the last time.
    ///
    /// # Errors
    /// If what was written cannot be read.
    pub(crate) fn take_flow(&mut self, place: usize) -> io::Result<LoneFlow> {
        let flow = self.settled.take(place)?;
        let spill = self.spill.take(&flow.parts);
        Ok(LoneFlow { flow, spill })
    }
}
