//! What the slow models of clocked switches share: their clock, the messages that hosts are handed over, and what becomes of packets.

use super::counting::Counting;
use super::cut;
use super::traffic::{Seen, Sending, When, answers};
use netsim::fabric::packet::PacketRecord;
use netsim::network::{Delivery, HostIndex, Token};
use netsim::time::SimTime;
use netsim::topology::{LinkId, NodeId, Topology};
use netsim::units::Bytes;
use std::collections::BTreeMap;

/// Cycles, each as long as a flit on a link.
#[derive(Clone, Copy)]
pub struct Clock {
    bits: u128,
    bps: u128,
}

impl Clock {
    /// Of flits on the links of `topology`, which all have one rate.
    pub fn new(flit: Bytes, topology: &Topology) -> Self {
        Self { bits: super::bits(flit.get()), bps: super::bps(topology.link(LinkId(0)).rate) }
    }

    /// When a cycle begins.
    pub fn begins(&self, cycle: u64) -> SimTime {
        SimTime(u64::try_from(u128::from(cycle) * self.bits / self.bps).unwrap())
    }

    /// The first cycle that does not begin before `time`.
    pub fn cycle_from(&self, time: u64) -> u64 {
        let mut cycle = u64::try_from(u128::from(time) * self.bps / self.bits).unwrap().saturating_sub(2);
        while self.begins(cycle).0 < time {
            cycle += 1;
        }
        cycle
    }

    /// Cycles of a link's own delay.
    pub fn delay(&self, topology: &Topology, link: LinkId) -> u64 {
        self.cycle_from(topology.link(link).delay_ps)
    }
}

/// The links that are there whose begin and end `keep` wants, in order.
pub fn links(topology: &Topology, keep: impl Fn(NodeId, NodeId) -> bool) -> Vec<LinkId> {
    let links = (0..).zip(topology.links());
    links.filter(|(_, link)| !link.absent && keep(link.from, link.to)).map(|(id, _)| LinkId(id)).collect()
}

/// All switches.
pub fn switches(topology: &Topology) -> impl Iterator<Item = NodeId> + use<> {
    (topology.hosts()..topology.nodes()).map(NodeId)
}

/// A packet, from when its message was handed over.
#[derive(Clone, Debug)]
pub struct Packet {
    pub record: PacketRecord,
    pub destination: NodeId,
    pub key: u64,
    pub flow: u64,
    pub level: u8,
    /// The cycle in which it left.
    pub left: u64,
}

/// The sizes of packets: payload at most, headers, flits.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub mtu: Bytes,
    pub headers: Bytes,
    pub flit: Bytes,
}

/// Messages, their packets, and what was seen of them.
pub struct Messages<'a> {
    topology: &'a Topology,
    traffic: &'a [Sending],
    clock: Clock,
    sizes: Sizes,
    pub packets: Vec<Packet>,
    /// Messages by when they are handed over.
    pending: BTreeMap<u64, Vec<usize>>,
    /// Packets that have not arrived, by message.
    open: BTreeMap<u64, u64>,
    numbers: Vec<u64>,
    delivered: Vec<(Token, SimTime)>,
    pub seen: Seen,
    pub counting: Counting,
}

impl<'a> Messages<'a> {
    /// Those of `traffic`; `loses_heads`: whether hosts lose what finds no room.
    pub fn new(topology: &'a Topology, traffic: &'a [Sending], sizes: Sizes, loses_heads: bool) -> Self {
        let mut pending: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (number, sending) in traffic.iter().enumerate() {
            if let When::At(time) = sending.when {
                pending.entry(time).or_default().push(number);
            }
        }
        Self {
            topology,
            traffic,
            clock: Clock::new(sizes.flit, topology),
            sizes,
            packets: Vec::new(),
            pending,
            open: BTreeMap::new(),
            numbers: vec![0; topology.hosts() as usize],
            delivered: Vec::new(),
            seen: Seen::default(),
            counting: Counting::new(loses_heads),
        }
    }

    /// The cycle from which on the next message counts, as far as is known.
    pub fn next_cycle(&self) -> Option<u64> {
        self.pending.keys().next().map(|time| self.clock.cycle_from(*time))
    }

    /// The last flit of a packet has come to its host at the begin of `cycle`.
    pub fn arrives(&mut self, packet: usize, cycle: u64) {
        let at = self.clock.begins(cycle);
        let record = &mut self.packets[packet].record;
        record.arrived = at;
        self.seen.packets.push(*record);
        let token = record.token;
        let left = self.open.get_mut(&token.0).unwrap();
        *left -= 1;
        if *left == 0 && self.counting.is_whole(token.0) {
            self.delivered.push((token, at));
        }
    }

    /// What has arrived is answered; then all is handed over that counts in `cycle`. Returns the packets, each with its host.
    pub fn hand_over(&mut self, cycle: u64) -> Vec<(usize, usize)> {
        self.delivered.sort();
        for (token, at) in std::mem::take(&mut self.delivered) {
            self.seen.deliveries.push(Delivery { token, at });
            for (answer, think) in answers(self.traffic, usize::try_from(token.0).unwrap()) {
                self.pending.entry(at.0 + think).or_default().push(answer);
            }
        }
        let mut packets = Vec::new();
        while let Some(entry) = self.pending.first_entry()
            && self.clock.cycle_from(*entry.key()) <= cycle
        {
            let (time, numbers) = entry.remove_entry();
            for number in numbers {
                self.cut(time, number, &mut packets);
            }
        }
        packets
    }

    /// The packets of message `number`, which is handed over at `time`.
    fn cut(&mut self, time: u64, number: usize, packets: &mut Vec<(usize, usize)>) {
        let sending = &self.traffic[number];
        let Sizes { mtu, headers, flit } = self.sizes;
        let lengths = cut(sending.bytes, mtu.get(), headers.get());
        self.open.insert(number as u64, lengths.len() as u64);
        for bytes in lengths {
            let host = self.topology.host_node(sending.source).0 as usize;
            let count = self.numbers[host];
            self.numbers[host] += 1;
            let record = PacketRecord {
                handed_over: SimTime(time),
                left: SimTime::ZERO,
                arrived: SimTime::ZERO,
                source: HostIndex(sending.source),
                destination: HostIndex(sending.destination),
                number: count,
                bytes,
                flits: u32::try_from(u64::from(bytes).div_ceil(flit.get())).unwrap(),
                switches: 0,
                token: Token(number as u64),
            };
            packets.push((host, self.packets.len()));
            self.packets.push(Packet {
                record,
                destination: self.topology.host_node(sending.destination),
                key: (u64::from(sending.source) << 40) + count,
                flow: sending.flow,
                level: sending.level,
                left: 0,
            });
        }
    }

    /// Another packet that is the same as `packet`.
    pub fn copied(&mut self, packet: usize) -> usize {
        let copy = self.packets[packet].clone();
        self.packets.push(copy);
        self.packets.len() - 1
    }

    /// A packet leaves its host in `cycle`.
    pub fn leaves(&mut self, packet: usize, cycle: u64) {
        self.packets[packet].left = cycle;
        self.packets[packet].record.left = self.clock.begins(cycle);
    }

    /// The packets that were lost in `cycle` are.
    pub fn lose(&mut self, cycle: u64) {
        for packet in std::mem::take(&mut self.counting.lost) {
            let (record, at) = (self.packets[packet].record, self.clock.begins(cycle));
            self.counting.loses(&record, at, &mut self.open, &mut self.seen);
        }
    }

    /// Flits of `packet`.
    pub fn flits(&self, packet: usize) -> u32 {
        self.packets[packet].record.flits
    }

    /// Whether flit `number` of `packet` is its last one.
    pub fn is_tail(&self, (packet, number): (usize, u32)) -> bool {
        number + 1 == self.flits(packet)
    }
}
