//! What is on its way, where flits wait, and whose the virtual channels are.

use crate::fabric::clocked::ports::NONE;
use crate::fabric::ids::PacketId;

#[derive(Clone, Copy)]
pub(super) struct Flit {
    pub packet: PacketId,
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
pub(super) struct InputVc {
    pub state: State,
    /// Whether its first flit has been given the crossbar, which counts in cycle `crossbar_at`.
    pub crosses: bool,
    /// Flits that wait, and the place of the first among those of this VC.
    pub flits: u32,
    pub first: u32,
    /// When its head asks for a VC; when that which it has been given counts.
    pub vc_at: u64,
    /// When its first flit asks for the crossbar; when what it has been given counts.
    pub crossbar_at: u64,
    /// The output by which it goes on as its switch counts them, [`NONE`] if it may choose among several; its class of VCs.
    pub output: u32,
    pub class: u8,
    /// The VC that it has been given, among those of all outputs.
    pub given: u32,
    /// The way to the output that its first flit has been given.
    pub way: u32,
}

impl InputVc {
    pub const IDLE: Self = Self {
        state: State::Idle,
        crosses: false,
        flits: 0,
        first: 0,
        vc_at: 0,
        crossbar_at: 0,
        output: NONE,
        class: 0,
        given: NONE,
        way: NONE,
    };
}

/// A VC of a link, as its sender knows it.
#[derive(Clone, Copy)]
pub(super) struct OutputVc {
    /// Flits for which there is room.
    pub credits: u32,
    /// Whether it is a packet's.
    pub taken: bool,
    /// Whether that packet's last flit was sent, and its credit is waited for.
    pub tail_sent: bool,
}

impl OutputVc {
    /// Whether a packet of so many flits may be given it, if it asks for room for the whole packet.
    pub const fn is_free_for(&self, flits: Option<u32>) -> bool {
        let room = match flits {
            Some(flits) => self.credits >= flits,
            None => true,
        };
        room && !self.taken
    }

    /// A flit is sent.
    pub const fn send(&mut self, tail: bool, wait_for_credit: bool) {
        self.credits -= 1;
        if tail && wait_for_credit {
            self.tail_sent = true;
        } else if tail {
            self.taken = false;
        }
    }

    /// A credit has come back; `all` are there if nothing is under way.
    pub const fn credit(&mut self, all: u32) {
        self.credits += 1;
        if self.tail_sent && self.credits == all {
            (self.taken, self.tail_sent) = (false, false);
        }
    }
}

/// A flit that crosses the crossbar now: the VC in which it lies, as its switch counts them, its way to the output, and whether it was held
/// for its packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Crossing {
    pub vc: u32,
    pub way: u32,
    pub held: bool,
}

/// What a host is sending.
#[derive(Clone, Copy)]
pub(super) struct Host {
    /// Flits of its packet that have not left, and that packet.
    pub flits: u32,
    pub packet: PacketId,
    /// That packet's VC; the one that was taken last.
    pub vc: u8,
    pub listed: bool,
}
