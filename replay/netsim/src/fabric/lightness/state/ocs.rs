//! Circuits, and what the circuit switch knows.

use crate::fabric::ids::PacketId;
use crate::network::CircuitTotals;
use crate::time::SimTime;
use std::collections::{BTreeSet, VecDeque};

/// How far a circuit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody asked for it.
    Down,
    /// Asked for and not yet answered, or refused and to be asked for again.
    Requested,
    /// Granted: it holds these ports (input, output) and will be up.
    SettingUp(u32, u32),
    /// Usable since then, over these ports.
    Up(u32, u32, SimTime),
    /// A fibre, not a circuit.
    Fixed,
}

/// The way from one ToR to another through the circuit switch.
pub struct Circuit {
    pub from: u32,
    pub to: u32,
    pub state: State,
    pub waiting: VecDeque<PacketId>,
    pub sending: bool,
    pub reserved: u32,
    /// Flows that wait for a place.
    pub wants: VecDeque<u32>,
    /// Whether it waits for a place in its destination's ToR.
    pub wants_place: bool,
    /// Packets in the output's buffer, and until when the output is in use.
    pub draining: u32,
    pub output_free: SimTime,
    /// When its last request was refused, if it waits for the next one to be answered.
    pub refused: Option<SimTime>,
    /// When it was asked for, and granted.
    pub asked: SimTime,
    pub granted: SimTime,
    /// What its ToR sends must have left by then.
    pub closes: SimTime,
    /// Its present span's number; [`NO_SPAN`] where none is remembered.
    pub span: u32,
    /// Since when it has nothing to do, and whether an event looks at that.
    pub idle_since: SimTime,
    pub idle_event: bool,
}

impl Circuit {
    pub fn is_up(&self) -> bool {
        matches!(self.state, State::Up(..) | State::Fixed)
    }

    pub fn is_idle(&self) -> bool {
        !self.sending && self.reserved == 0 && self.draining == 0
    }
}

/// The place of a request among those of its instant.
pub type Rank = (u32, u32);

/// The circuit switch.
#[derive(Default)]
pub struct Ocs {
    /// Which circuit holds each input port and each output port, by rack and wavelength.
    pub inputs: Vec<Option<u32>>,
    pub outputs: Vec<Option<u32>>,
    /// Requests of this instant.
    pub requests: Vec<u32>,
    /// When requests were answered last, those of that instant that are still to be answered, and whose turn it is.
    pub decided: Option<SimTime>,
    pub deciding: BTreeSet<(Rank, u32)>,
    pub turn: Option<Rank>,
    /// The rack whose request was granted last, for each destination's rack; and the destination of the last one.
    pub last: Vec<u32>,
    pub last_output: u32,
    /// By input port the circuits that a scheduler has planned, the present one among them, in order.
    pub planned: Vec<VecDeque<Planned>>,
    /// All circuits that were released.
    pub totals: CircuitTotals,
    /// The circuits that were set up, as many as are remembered.
    pub spans: Vec<CircuitSpan>,
}

/// Circuits that were refused, by the racks of their ports; each is in both.
#[derive(Default)]
pub struct Refused {
    by_input: Vec<Vec<u32>>,
    by_output: Vec<Vec<u32>>,
}

impl Refused {
    pub fn new(racks: usize) -> Self {
        Self { by_input: vec![Vec::new(); racks], by_output: vec![Vec::new(); racks] }
    }

    /// Those with an input port, or an output port, at `rack`.
    pub fn of(&mut self, rack: u32, input: bool) -> &mut Vec<u32> {
        let lists = if input { &mut self.by_input } else { &mut self.by_output };
        &mut lists[rack as usize]
    }
}

/// A circuit that a scheduler has planned.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    pub circuit: u32,
    pub output: u32,
    pub end: SimTime,
}

/// So many circuits are remembered.
pub const MAX_SPANS: usize = 1 << 16;

/// A circuit from its grant to its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitSpan {
    /// The input port: rack x ports of a ToR + fibre and wavelength.
    pub input: u32,
    /// The output port, numbered the same way.
    pub output: u32,
    /// When its ToR first asked for it.
    pub asked: SimTime,
    /// When it was granted.
    pub granted: SimTime,
    /// When it could be used; `None` while it is set up.
    pub up: Option<SimTime>,
    /// When the last packet that it was given has left its ToR.
    pub last_used: Option<SimTime>,
    /// When it was released or given up; `None` while it is up.
    pub released: Option<SimTime>,
    /// Whether it was given up for another one.
    pub evicted: bool,
    /// Packets that it carried.
    pub packets: u64,
    /// Their bytes on the fibre.
    pub bytes: u64,
}

/// No span is remembered for a circuit.
pub const NO_SPAN: u32 = u32::MAX;
