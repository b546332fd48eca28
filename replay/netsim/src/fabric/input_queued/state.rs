//! What is on its way, where flits wait, and whose the virtual channels are.

use crate::fabric::clocked::ports::NONE;
use crate::fabric::ids::PacketId;
use crate::topology::LinkId;

/// Ends of links and outputs that are numbered beside the number of a VC.
pub(super) const MAX_PORTS: usize = 1 << 28;

/// A flit: the number of its packet, of which there are less than 2^31 (they would take 100 GiB), and whether it is the last one.
#[derive(Clone, Copy)]
pub(super) struct Flit(u32);

impl Flit {
    pub const NONE: Self = Self(u32::MAX);

    pub const fn new(packet: PacketId, tail: bool) -> Self {
        Self(packet.0 << 1 | tail as u32)
    }

    pub const fn packet(self) -> PacketId {
        PacketId(self.0 >> 1)
    }

    pub const fn is_tail(self) -> bool {
        self.0 & 1 == 1
    }
}

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
pub(super) struct InputVc {
    pub state: State,
    /// Whether its first flit has been given the crossbar, which counts in cycle `crossbar_at`.
    pub crosses: bool,
    /// Whether the packet that is first has begun to leave.
    pub begun: bool,
    /// The class of VCs by which it goes on.
    pub class: u8,
    /// Flits that wait, and the place of the first among those of this VC.
    pub flits: u32,
    pub first: u32,
    /// The output by which it goes on as its switch counts them, [`NONE`] if it may choose among several.
    pub output: u32,
    /// Flits for which the VC must have room that it is given.
    pub room: u32,
    /// The VC that it has been given.
    pub given: PortVc,
    /// The way to the output that its first flit has been given.
    pub way: u32,
    /// When its head asks for a VC; when that which it has been given counts.
    pub vc_at: u64,
    /// When its first flit asks for the crossbar; when what it has been given counts.
    pub crossbar_at: u64,
}

impl InputVc {
    pub const IDLE: Self = Self {
        state: State::Idle,
        crosses: false,
        begun: false,
        class: 0,
        flits: 0,
        first: 0,
        output: NONE,
        room: 0,
        given: PortVc::NONE,
        way: NONE,
        vc_at: 0,
        crossbar_at: 0,
    };
}

/// Whose a VC is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Nobody,
    /// The packet that the host sends.
    Host,
    /// The packet that is first in this VC of an input.
    Input(PortVc),
    /// A packet whose last flit was sent, and whose credits are waited for.
    LastCredit,
}

/// A VC of a link, as its sender knows it.
#[derive(Clone, Copy)]
pub(super) struct OutputVc {
    /// Flits for which there is room.
    pub credits: u32,
    pub owner: Owner,
    /// Flits that were sent.
    pub sent: u64,
}

/// The end of a link: an input of a switch, or a host's.
#[derive(Clone, Copy)]
pub(super) struct End {
    /// VCs, a bit each, in which a head asks for a VC (and finds one that is free, as far as is known), or has been given one that does not
    /// count yet.
    pub heads: u16,
    /// VCs whose first flit may ask for the crossbar: it has a VC and a credit; or has been given it.
    pub ready: u16,
    /// Its switch; [`NONE`] at a host.
    pub switch: u32,
    pub link: LinkId,
    /// The output where the link begins.
    pub sender: u32,
    /// How long a credit takes until it counts there, in cycles.
    pub credit_delay: u64,
}

/// The begin of a link, at a switch or a host.
#[derive(Clone, Copy)]
pub(super) struct Output {
    /// When the next flit may leave.
    pub leaves: u64,
    pub link: LinkId,
    /// The end of the link.
    pub end: u32,
    /// How long a flit takes to get there, in cycles.
    pub delay: u64,
    /// The host where it begins; [`NONE`] at a switch.
    pub host: u32,
    /// VCs that are nobody's, a bit each.
    pub free: u16,
    pub to_host: bool,
}

/// A flit at the end of a link.
pub(super) struct Arrival {
    pub at: PortVc,
    pub flit: Flit,
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
    if number >= turn { number - turn } else { number + of - turn }
}

/// The number behind `number`, of `of` once around.
#[inline]
pub(super) const fn next(number: u32, of: u32) -> u32 {
    if number + 1 == of { 0 } else { number + 1 }
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
    pub listed: bool,
    /// Whether it waits for a credit or a VC.
    pub waits: bool,
}

/// A switch: its number, and where its inputs and outputs begin, each with how many there are.
#[derive(Clone, Copy)]
pub(super) struct Switch {
    pub number: u32,
    pub inputs: (u32, u32),
    pub outputs: (u32, u32),
}

impl Switch {
    pub const fn inputs(&self) -> std::ops::Range<u32> {
        self.inputs.0..self.inputs.0 + self.inputs.1
    }

    /// The number of `at` among the VCs of its inputs (or outputs), which begin at port `first`.
    pub const fn number_of(at: PortVc, first: u32, vcs: u32) -> u32 {
        (at.port() - first) * vcs + at.vc()
    }
}

/// The numbers of the bits of `mask` that are set.
#[inline]
pub(super) fn bits(mut mask: u16) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros());
        mask &= mask.wrapping_sub(1);
        bit
    })
}
