//! What routers all of whose packets have one flit consist of. What each packet needs is apart from what is seldom looked at: a cache line has
//! the more of it.

use crate::fabric::ids::PacketId;
use crate::fabric::input_output_queued::bits::Bits;
use crate::topology::{LinkId, NodeId};

/// A packet under way.
#[derive(Clone, Copy)]
pub(super) struct UnderWay {
    /// The packet behind it in a queue.
    pub next: PacketId,
    pub destination: NodeId,
    pub bytes: u32,
    /// Switches that it has left.
    pub switches: u32,
}

impl UnderWay {
    /// No packet.
    pub const NONE: Self = Self { next: PacketId::NONE, destination: NodeId(0), bytes: 0, switches: 0 };
}

/// Where a packet lies among all under way. The first place is that of no packet: what is written there tells nobody anything.
#[inline(always)]
pub(super) const fn place_of(packet: PacketId) -> usize {
    packet.0.wrapping_add(1) as usize
}

/// A queue of packets: the first and the last one. Whether it is empty is left to chance, and so nothing branches by it.
#[derive(Clone, Copy)]
pub(super) struct Queue {
    pub first: PacketId,
    pub last: PacketId,
}

impl Queue {
    pub const EMPTY: Self = Self { first: PacketId::NONE, last: PacketId::NONE };

    /// Puts `packet` behind all others. Returns whether there was none.
    #[inline(always)]
    pub fn push(&mut self, packets: &mut [UnderWay], packet: PacketId) -> bool {
        let before = std::mem::replace(&mut self.last, packet);
        packets[place_of(before)].next = packet;
        let was_empty = before == PacketId::NONE;
        self.first = select(was_empty, packet, self.first);
        was_empty
    }

    /// Takes out the first packet, and tells whether that leaves none.
    #[inline(always)]
    pub fn pop(&mut self, packets: &mut [UnderWay]) -> (PacketId, bool) {
        let packet = self.first;
        self.first = std::mem::replace(&mut packets[place_of(packet)].next, PacketId::NONE);
        let is_empty = self.first == PacketId::NONE;
        self.last = select(is_empty, PacketId::NONE, self.last);
        (packet, is_empty)
    }
}

/// `a`, if it is the `first` that is wanted, else `b`, without a branch.
#[inline(always)]
fn select(first: bool, a: PacketId, b: PacketId) -> PacketId {
    let mask = u32::from(first).wrapping_neg();
    PacketId(a.0 & mask | b.0 & !mask)
}

/// The end of a link, at a switch.
#[derive(Clone, Copy)]
pub(in crate::fabric::input_output_queued) struct Input {
    switch: u32,
    /// The first VC of its sender's output, and cycles until that is told of credits.
    first_sender_vc: u32,
    told_after: u16,
    /// The number of its first VC among those of its switch.
    first_bit: u8,
}

impl Input {
    /// Of `switch`, where its first VC has the number `first_bit`.
    pub const fn new((switch, first_bit): (u32, u8), (first_sender_vc, told_after): (u32, u16)) -> Self {
        Self { switch, first_sender_vc, told_after, first_bit }
    }

    /// Its switch, and the number of a VC there.
    #[inline(always)]
    pub(super) const fn place(&self, vc: u32) -> (u32, u32) {
        (self.switch, (self.first_bit as u32).wrapping_add(vc))
    }

    /// Who is told of the credit of a VC, and after how many cycles.
    #[inline(always)]
    pub(super) const fn sender(&self, vc: u32) -> (u32, u16) {
        (self.first_sender_vc.wrapping_add(vc), self.told_after)
    }
}

/// A VC of a link, at its sender.
#[derive(Clone, Copy)]
pub(super) struct OutVc {
    /// Packets in its queue; of a host: whether that waits for a credit.
    pub held: u16,
    /// Where nobody counts them, towards a host: more than none.
    pub credits: u16,
    /// Packets that have left, modulo 2^32.
    pub sent: u32,
}

impl OutVc {
    /// A packet leaves that takes so many credits. Returns whether the count of packets began again.
    #[inline(always)]
    pub const fn sends(&mut self, credits: u16) -> bool {
        self.credits = self.credits.wrapping_sub(credits);
        self.sent = self.sent.wrapping_add(1);
        self.sent == 0
    }
}

/// A link, at its sender.
#[derive(Clone, Copy)]
pub(in crate::fabric::input_output_queued) struct Out {
    /// Bytes and packets that have begun to cross it in the present interval.
    pub bytes: u64,
    pub packets: u64,
    /// The input where it ends, and cycles until a packet is there.
    pub(super) input: u32,
    pub(super) ahead: u32,
    /// VCs with packets, a bit each.
    pub(super) waiting: u16,
    /// The VC with which the choice of the next packet begins.
    pub(super) turn: u8,
    pub(super) to_host: bool,
}

/// Where a link begins.
#[derive(Clone, Copy)]
pub(in crate::fabric::input_output_queued) struct Sender {
    pub link: LinkId,
    /// The switch, or the node of the host.
    pub from: u32,
    pub is_host: bool,
    /// Of a host: whether it is in the list of those that may send.
    pub(super) is_listed: bool,
}

impl Out {
    /// A link that ends at a host or at an input, `ahead` cycles away.
    pub fn new(input: Option<u32>, ahead: u32) -> Self {
        let to_host = input.is_none();
        Self { bytes: 0, packets: 0, input: input.unwrap_or(0), ahead, waiting: 0, turn: 0, to_host }
    }

    /// Credits that a packet takes.
    #[inline(always)]
    pub(super) fn takes(&self) -> u16 {
        u16::from(!self.to_host)
    }
}

impl Sender {
    /// Of `link`.
    pub const fn new(link: LinkId, (from, is_host): (u32, bool)) -> Self {
        Self { link, from, is_host, is_listed: false }
    }
}

/// A switch.
#[derive(Clone, Copy)]
pub(in crate::fabric::input_output_queued) struct Switch {
    /// VCs of inputs with packets, and VCs of outputs whose queues have room, a bit each.
    pub asking: Bits,
    pub open: Bits,
    /// Outputs with packets, and those of them whose packets may find credits, a bit each.
    pub(super) waiting: u64,
    pub ready: u64,
    /// Its first input and output.
    pub(super) first_input: u32,
    pub(super) first_output: u32,
    /// Its first VC of an input and of an output.
    pub first_in_vc: u32,
    pub first_out_vc: u32,
    pub is_listed: bool,
}

/// VCs of outputs of a switch that lie next to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::fabric::input_output_queued) struct VcRun {
    pub first: u8,
    /// 64 at most; 0: not known.
    pub count: u8,
}

impl VcRun {
    pub const UNKNOWN: Self = Self { first: 0, count: 0 };
}
