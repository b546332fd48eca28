//! What is on its way, where flits wait, and whose the virtual channels are.

use crate::fabric::clocked::ports::NONE;
use crate::fabric::ids::PacketId;
use crate::topology::LinkId;

/// Ends of links and outputs that are numbered beside the number of a VC.
pub(super) const MAX_PORTS: usize = 1 << 28;

/// A VC of the end of a link, or of an output.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PortVc(u32);

impl PortVc {
    pub const NONE: Self = Self(u32::MAX);

    /// VC `vc`, below 16, of `port`, below [`MAX_PORTS`].
    pub const fn new(port: u32, vc: u32) -> Self {
        Self(port << 4 | vc)
    }

    pub const fn port(self) -> u32 {
        self.0 >> 4
    }

    pub const fn vc(self) -> u32 {
        self.0 & 15
    }

    /// Its bit among the VCs of its port.
    pub const fn bit(self) -> u16 {
        1 << (self.0 & 15)
    }
}

/// A flit that leaves.
#[derive(Clone, Copy)]
pub(super) struct Flit {
    pub packet: PacketId,
    pub head: bool,
    pub tail: bool,
}

/// What becomes of the packet whose flits are first in a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// There is none.
    Idle,
    /// Its head asks for a VC.
    Asking,
    /// It has been given one, which counts at the end of a cycle.
    Granted,
    /// It has one.
    Active,
}

/// A VC at the end of a link, at a switch.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct InputVc {
    pub state: State,
    /// Whether its first flit has been given the crossbar, which counts in its cycle [`Crossbar::at`].
    pub crosses: bool,
    /// Whether the packet that is first has begun to leave.
    pub begun: bool,
    /// The class of VCs by which it goes on.
    pub class: u8,
    /// Where in its ring the first flit lies, or will lie.
    pub first: u32,
    /// The packet that is first, and how many of its flits have not left.
    pub packet: PacketId,
    pub left: u32,
    /// The output by which it goes on as its switch counts them, [`NONE`] if it may choose among several.
    pub output: u32,
    /// The VC that it has been given.
    pub given: PortVc,
    /// When its head asks for a VC; when that which it has been given counts.
    pub vc_at: u64,
}

impl InputVc {
    pub const IDLE: Self = Self {
        state: State::Idle,
        crosses: false,
        begun: false,
        class: 0,
        first: 0,
        packet: PacketId::NONE,
        left: 0,
        output: NONE,
        given: PortVc::NONE,
        vc_at: 0,
    };
}

/// What the first flit of a VC has to do with the crossbar, where that takes more than being ready.
#[derive(Clone, Copy)]
pub(super) struct Crossbar {
    /// When it asks for it; when what it has been given counts.
    pub at: u64,
    /// The way to the output that it has been given.
    pub way: u32,
}

/// Whose a VC of an output is: the packet's that is first in a VC of an input, or one of the following.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner(PortVc);

impl Owner {
    // Ports have lower numbers.
    pub const NOBODY: Self = Self(PortVc(u32::MAX));
    /// The packet that the host sends.
    pub const HOST: Self = Self(PortVc(u32::MAX - 1));
    /// A packet whose last flit was sent, and whose credits are waited for.
    pub const LAST_CREDIT: Self = Self(PortVc(u32::MAX - 2));

    pub const fn input(at: PortVc) -> Self {
        Self(at)
    }

    /// The VC of an input whose first packet's it is, if it is one's.
    pub fn of_input(self) -> Option<PortVc> {
        (self.0.0 < Self::LAST_CREDIT.0.0).then_some(self.0)
    }
}

/// A VC of a link, as its sender knows it.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct OutputVc {
    /// Flits for which there is room, at least: as many as were counted.
    pub credits: u32,
    /// Where in the ring at the end of the link the next flit will lie.
    pub next: u32,
    /// Where that ring begins.
    pub ring: usize,
    /// Flits that were sent.
    pub sent: u64,
    pub owner: Owner,
    /// When a flit has arrived that leaves a host, or crosses the crossbar with nothing before it: so many cycles later.
    pub arrives_in: u32,
}

/// An input of a switch.
#[derive(Clone, Copy)]
pub(super) struct Input {
    /// VCs, a bit each, in which a head asks for a VC (and finds one that is free, as far as is known), or has been given one that does not
    /// count yet.
    pub heads: u16,
    pub switch: u32,
    /// Its bit among those of all switches.
    pub bit: u32,
    pub link: LinkId,
    /// The output where the link begins.
    pub sender: u32,
    /// How long a credit takes until it counts there, in cycles.
    pub credit_delay: u32,
}

impl Input {
    /// The word with its bit, and that.
    #[inline]
    pub const fn mark(&self) -> (usize, u64) {
        ((self.bit >> 6) as usize, 1 << (self.bit & 63))
    }
}

/// The begin of a link, at a switch or a host.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Output {
    /// When the next flit may leave.
    pub leaves: u64,
    pub link: LinkId,
    /// The end of the link.
    pub end: u32,
    /// How long a flit takes to get there, and a credit until it counts here, in cycles.
    pub delay: u32,
    pub credit_delay: u32,
    /// The host where it begins; [`NONE`] at a switch.
    pub host: u32,
    /// VCs that are nobody's, a bit each.
    pub free: u16,
    pub to_host: bool,
}

/// A flit that crosses the crossbar now: the VC in which it lies, its way to the output, and whether it was held for its packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Crossing {
    pub at: PortVc,
    pub way: u32,
    pub held: bool,
}

/// The best of those that ask for one thing: its rank, which is the least, what asks, and what it asks for.
#[derive(Clone, Copy)]
pub(super) struct Offer {
    pub rank: u32,
    pub from: PortVc,
    pub to: PortVc,
}

impl Offer {
    pub const NONE: Self = Self { rank: u32::MAX, from: PortVc::NONE, to: PortVc::NONE };
}

/// How many steps it is from `turn` on to `number`, of `of` numbers once around.
#[inline]
pub(super) const fn behind(number: u32, turn: u32, of: u32) -> u32 {
    // The lesser one is that which is not below 0: whether the turn is behind the number is left to chance, and nothing branches by it.
    let steps = number.wrapping_sub(turn);
    let around = steps.wrapping_add(of);
    if steps < around { steps } else { around }
}

/// The number behind `number`, of `of` once around.
#[inline]
pub(super) const fn next(number: u32, of: u32) -> u32 {
    let behind = number.wrapping_add(1);
    if behind == of { 0 } else { behind }
}

/// The first of the cycles `at`, `at` + `latency`, ... that is not before `now`.
#[inline]
pub(super) const fn not_before(at: u64, now: u64, latency: u64) -> u64 {
    if at >= now {
        at
    } else if latency == 1 {
        now
    } else {
        at + (now - at).div_ceil(latency) * latency
    }
}

/// What a host is sending.
#[derive(Clone, Copy)]
pub(super) struct Host {
    /// Where its link begins.
    pub output: u32,
    /// Flits of its packet that have not left, and that packet.
    pub flits: u32,
    pub packet: PacketId,
    /// That packet's VC; the one that was taken last.
    pub vc: u8,
    /// Whether the first flit of its packet has left.
    pub begun: bool,
    pub listed: bool,
    /// Whether it waits for a credit or a VC.
    pub waits: bool,
}

/// A switch: its number, and where its inputs, its outputs and the words with bits of its inputs begin, each with how many there are.
#[derive(Clone, Copy)]
pub(super) struct Switch {
    pub number: u32,
    pub inputs: (u32, u32),
    pub outputs: (u32, u32),
    pub words: (u32, u32),
}

impl Switch {
    pub const fn inputs(&self) -> std::ops::Range<u32> {
        self.inputs.0..self.inputs.0 + self.inputs.1
    }

    /// Where its inputs lie among all.
    #[inline]
    pub const fn places_of_inputs(&self) -> std::ops::Range<usize> {
        let (first, inputs) = self.inputs;
        first as usize..(first as usize).wrapping_add(inputs as usize)
    }

    /// Where its outputs lie among all.
    #[inline]
    pub const fn places_of_outputs(&self) -> std::ops::Range<usize> {
        let (first, outputs) = self.outputs;
        first as usize..(first as usize).wrapping_add(outputs as usize)
    }

    /// Where the words with bits of its inputs begin and end.
    #[inline]
    pub const fn words(&self) -> std::ops::Range<usize> {
        let (first, words) = self.words;
        first as usize..(first as usize).wrapping_add(words as usize)
    }

    /// The input whose bit is the lowest one of one of these words.
    #[inline]
    pub const fn lowest(&self, word: usize) -> u32 {
        self.inputs.0.wrapping_add((word as u32).wrapping_sub(self.words.0) << 6)
    }

    /// The number of `at` among the VCs of its inputs (or outputs), which begin at port `first`.
    #[inline]
    pub const fn number_of(at: PortVc, first: u32, vcs: u32) -> u32 {
        at.port().wrapping_sub(first).wrapping_mul(vcs).wrapping_add(at.vc())
    }
}

/// The numbers of the bits of `mask` that are set.
#[inline]
pub(super) fn bits(mask: impl Into<u64>) -> impl Iterator<Item = u32> {
    let mut mask: u64 = mask.into();
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros());
        mask &= mask.wrapping_sub(1);
        bit
    })
}

/// Inputs of switches that can go on, 64 of them, a bit each.
#[derive(Clone, Copy, Default)]
pub(super) struct ActiveInputs {
    /// Those with heads that ask for VCs.
    pub heads: u64,
    /// Those with first flits that may ask for the crossbar.
    pub ready: u64,
}
