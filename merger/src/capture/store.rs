//! The packets of one host, gathered by the two addresses between which they went: packed in memory, and beyond a limit
//! in a temporary file, from which each flow is read by itself.

use std::io::{self, Write as _};
use std::sync::Arc;

use trace::packet::{PacketView, PlainPacket};

use super::flows::{FlowKey, canonical};
use super::observed::{Context, MAX_HEAD, Observed, kept};
use super::recent::Recent;
use crate::maps::HashMap;
use crate::temporary::{Appending, TemporaryFile};

/// Memory that the packets of a host may take where nobody says, bytes.
const DEFAULT_LIMIT: u64 = 1 << 30;
/// Bytes of one flow on one host, at most: a flow is read as a whole, and its payload is told by 32 bits.
const MAX_FLOW_BYTES: u64 = u32::MAX as u64;
/// What a flow takes beside its packets, bytes.
const FLOW_BYTES: u64 = 300;

/// The packets of one host.
#[derive(Clone, Debug)]
pub struct Packets {
    /// Flows by their keys, while packets come.
    numbers: HashMap<FlowKey, u32>,
    flows: Vec<GrowingFlow>,
    /// Flows to which no more packets come, and their numbers in the order of their keys.
    settled: Vec<StoredFlow>,
    in_order: Vec<u32>,
    /// The flow of the packet before, and its key.
    last: Option<(FlowKey, u32)>,
    recent: Recent,
    /// Bytes of packets in memory, and how many may be.
    held: u64,
    limit: u64,
    spill: Option<Spill>,
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

/// A temporary file without a name: it goes when the last reader goes.
#[derive(Clone, Debug)]
struct Spill {
    file: Arc<TemporaryFile>,
    length: u64,
}

/// A flow to which packets come.
#[derive(Clone, Debug)]
struct GrowingFlow {
    key: FlowKey,
    /// Parts in the file, in order: where each begins and how long it is.
    parts: Vec<(u64, u32)>,
    /// What follows on them.
    bytes: Chunks,
    context: Context,
    packets: u32,
    file: u16,
    several_files: bool,
    first_ns: u64,
    last_ns: u64,
}

impl GrowingFlow {
    /// Without packets; the first one comes from a file.
    fn new(key: FlowKey, file: u16) -> Self {
        Self {
            key,
            parts: Vec::new(),
            bytes: Chunks::default(),
            context: Context::default(),
            packets: 0,
            file,
            several_files: false,
            first_ns: u64::MAX,
            last_ns: 0,
        }
    }

    fn spilled(&self) -> u64 {
        spilled(&self.parts)
    }

    fn settled(self) -> StoredFlow {
        StoredFlow {
            key: self.key,
            parts: self.parts.into(),
            bytes: self.bytes.whole(),
            packets: self.packets,
            several_files: self.several_files,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
        }
    }
}

fn spilled(parts: &[(u64, u32)]) -> u64 {
    parts.iter().map(|(_, length)| u64::from(*length)).sum()
}

/// A flow to which no more packets come.
#[derive(Clone, Debug)]
struct StoredFlow {
    key: FlowKey,
    /// Parts in the file, in order: where each begins and how long it is.
    parts: Box<[(u64, u32)]>,
    /// What follows on them.
    bytes: Box<[u8]>,
    packets: u32,
    several_files: bool,
    first_ns: u64,
    last_ns: u64,
}

impl StoredFlow {
    /// Its packets as they came, some of them from the temporary file.
    fn read(&self, spill: Option<&Spill>) -> io::Result<FlowPackets> {
        let spilled = spilled(&self.parts);
        if spilled + self.bytes.len() as u64 > MAX_FLOW_BYTES {
            return Err(too_much(&self.key));
        }
        let spilled = usize::try_from(spilled).map_err(io::Error::other)?;
        let mut kept = Vec::with_capacity(spilled + self.bytes.len());
        kept.resize(spilled, 0);
        if let Some(spill) = spill {
            let mut rest = kept.as_mut_slice();
            for &(at, length) in &self.parts {
                let (part, behind) = rest.split_at_mut(length as usize);
                spill.file.read_exact_at(part, at)?;
                rest = behind;
            }
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
    fn in_order(&self, spill: Option<&Spill>) -> io::Result<FlowPackets> {
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
}

/// The packets of one flow as one host saw them, by themselves: they go when they have been read for the last time.
#[derive(Debug)]
pub(crate) struct LoneFlow {
    flow: StoredFlow,
    spill: Option<Spill>,
}

impl LoneFlow {
    /// As [`Packets::flow`].
    ///
    /// # Errors
    /// If what was written cannot be read.
    pub fn packets(&self) -> io::Result<FlowPackets> {
        self.flow.in_order(self.spill.as_ref())
    }
}

/// Bytes that are appended, in pieces: none is moved once it is written.
#[derive(Clone, Debug, Default)]
struct Chunks {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
    /// Bytes of the full ones.
    before: usize,
}

/// Bytes of a chunk: as many as are there already, within these bounds.
const MIN_CHUNK: usize = 64;
const MAX_CHUNK: usize = 64 << 10;

impl Chunks {
    fn len(&self) -> usize {
        self.before + self.last.len()
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.full.iter().chain([&self.last]).map(Vec::as_slice)
    }

    /// Where so many bytes can be appended at once, and how much memory that takes more.
    #[inline]
    fn room(&mut self, bytes: usize) -> (&mut Vec<u8>, usize) {
        let more = if self.last.capacity() - self.last.len() < bytes { self.grow(bytes) } else { 0 };
        (&mut self.last, more)
    }

    fn grow(&mut self, bytes: usize) -> usize {
        let next = Vec::with_capacity(self.len().clamp(MIN_CHUNK, MAX_CHUNK).max(bytes));
        let more = next.capacity();
        let full = std::mem::replace(&mut self.last, next);
        if full.is_empty() {
            return more.saturating_sub(full.capacity());
        }
        self.before += full.len();
        self.full.push(full);
        more
    }

    /// All of them, one behind the other.
    fn whole(self) -> Box<[u8]> {
        if self.full.is_empty() {
            return self.last.into();
        }
        let mut whole = Vec::with_capacity(self.len());
        // Each goes when it has been copied.
        self.full.into_iter().chain([self.last]).for_each(|chunk| whole.extend_from_slice(&chunk));
        whole.into()
    }
}

/// The packets of one flow as one host saw them, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct FlowPackets {
    /// Packets.
    pub packets: Vec<Observed>,
    kept: Vec<u8>,
}

impl FlowPackets {
    /// The kept payload of a packet.
    #[must_use]
    pub fn payload(&self, packet: &Observed) -> &[u8] {
        let start = packet.kept_start as usize;
        self.kept.get(start..start.saturating_add(usize::from(packet.kept_length))).unwrap_or(&[])
    }
}

impl Packets {
    /// None yet; of those that come, no more than `limit` bytes are held in memory.
    #[must_use]
    pub fn within(limit: u64) -> Self {
        Self {
            numbers: HashMap::default(),
            flows: Vec::new(),
            settled: Vec::new(),
            in_order: Vec::new(),
            last: None,
            recent: Recent::default(),
            held: 0,
            limit: limit.min(MAX_FLOW_BYTES / 2),
            spill: None,
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
        let flow = &mut self.flows[number as usize];
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
        if !self.settled.is_empty() {
            self.reopen()?;
        }
        let next = self.flows.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.flows.push(GrowingFlow::new(key, first.file));
            self.held += FLOW_BYTES;
        }
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

    /// Writes all that is in memory to the file.
    fn spill(&mut self) -> io::Result<()> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill { file: Arc::new(TemporaryFile::new()?), length: 0 }),
        };
        let appending = Appending { file: &spill.file, at: spill.length };
        let mut out = io::BufWriter::with_capacity(1 << 20, appending);
        for flow in self.flows.iter_mut().filter(|flow| flow.bytes.len() > 0) {
            let length = u32::try_from(flow.bytes.len()).map_err(io::Error::other)?;
            if flow.spilled() + u64::from(length) > MAX_FLOW_BYTES {
                return Err(too_much(&flow.key));
            }
            flow.bytes.iter().try_for_each(|chunk| out.write_all(chunk))?;
            match flow.parts.last_mut() {
                Some((at, before)) if *at + u64::from(*before) == spill.length => *before += length,
                _ => flow.parts.push((spill.length, length)),
            }
            spill.length += u64::from(length);
            flow.bytes = Chunks::default();
        }
        out.flush()?;
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
        if self.flows.is_empty() && self.settled.is_empty() {
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

    /// Counts copies: the same packet seen on two interfaces (a bridge and its port) within a millisecond. A packet that was
    /// sent twice is seen twice on one interface. Gives back what only helps to take packets in.
    ///
    /// # Errors
    /// If what was written cannot be read.
    pub fn settle(&mut self) -> io::Result<()> {
        self.settle_flows();
        for number in 0..self.settled.len() {
            if self.settled[number].several_files {
                let mut flow = self.read(number)?.packets;
                flow.sort_by_key(|packet| packet.time_ns);
                self.copies += drop_copies(&mut flow);
                self.settled[number].last_ns = flow.last().map_or(0, |packet| packet.time_ns);
            }
        }
        Ok(())
    }

    fn settle_flows(&mut self) {
        if self.flows.is_empty() {
            return;
        }
        self.settled = std::mem::take(&mut self.flows).into_iter().map(GrowingFlow::settled).collect();
        // They were collected where the larger ones lay.
        self.settled.shrink_to_fit();
        self.in_order = (0..self.settled.len() as u32).collect();
        self.in_order.sort_unstable_by_key(|number| self.settled[*number as usize].key);
        (self.numbers, self.recent, self.last) = (HashMap::default(), Recent::default(), None);
    }

    /// The flows of which there are packets, in the order of their first ones.
    pub fn keys(&self) -> impl Iterator<Item = &FlowKey> {
        self.flows.iter().map(|flow| &flow.key).chain(self.settled.iter().map(|flow| &flow.key))
    }

    /// Each flow and its packets as they came, in the order of [`Packets::keys`].
    pub(super) fn stored(&self) -> impl Iterator<Item = io::Result<(FlowKey, FlowPackets)>> {
        let growing = self.flows.iter().map(|flow| Ok((flow.key, flow.clone().settled().read(self.spill.as_ref())?)));
        growing.chain((0..self.settled.len()).map(|number| Ok((self.settled[number].key, self.read(number)?))))
    }

    /// First and last packet, on the host's clock.
    #[must_use]
    pub fn range_ns(&self) -> (u64, u64) {
        let growing = self.flows.iter().map(|flow| (flow.first_ns, flow.last_ns));
        let ranges = growing.chain(self.settled.iter().map(|flow| (flow.first_ns, flow.last_ns)));
        ranges.fold((u64::MAX, 0), |(first, last), flow| (first.min(flow.0), last.max(flow.1)))
    }

    /// The packets of a flow by time, without copies, when no more come ([`Packets::settle`]); `None` if there are none.
    ///
    /// # Errors
    /// If what was written cannot be read.
    pub fn flow(&self, key: &FlowKey) -> io::Result<Option<FlowPackets>> {
        let Some(number) = self.number(key) else { return Ok(None) };
        self.settled[number].in_order(self.spill.as_ref()).map(Some)
    }

    /// Takes a flow out.
    pub(crate) fn take_flow(&mut self, key: &FlowKey) -> Option<LoneFlow> {
        let number = self.number(key)?;
        let flow = &mut self.settled[number];
        let (parts, bytes) = (std::mem::take(&mut flow.parts), std::mem::take(&mut flow.bytes));
        let taken = StoredFlow { parts, bytes, ..*flow };
        flow.packets = 0;
        Some(LoneFlow { flow: taken, spill: self.spill.clone() })
    }

    /// The number of a flow of which there are packets.
    fn number(&self, key: &FlowKey) -> Option<usize> {
        let key_of = |number: &u32| self.settled[*number as usize].key;
        let place = self.in_order.binary_search_by_key(key, key_of).ok()?;
        Some(self.in_order[place] as usize).filter(|number| self.settled[*number].packets > 0)
    }

    /// The packets of a flow as they came.
    fn read(&self, number: usize) -> io::Result<FlowPackets> {
        self.settled[number].read(self.spill.as_ref())
    }
}

fn too_much(key: &FlowKey) -> io::Error {
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
