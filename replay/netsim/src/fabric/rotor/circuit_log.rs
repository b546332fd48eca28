//! The circuits that carried something, for results.

use super::schedule::Rack;
use crate::network::{CircuitFigures, CircuitTotals};
use crate::time::SimTime;

/// So many are remembered one by one.
const MAX_CIRCUITS: usize = 1 << 16;

/// A circuit that carried something, from the begin of its set-up to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub from: Rack,
    pub to: Rack,
    pub switch: u32,
    pub begin: SimTime,
    pub up: SimTime,
    pub end: SimTime,
    pub last_used: SimTime,
    pub packets: u64,
    pub bytes: u64,
}

/// All circuits so far that carried something.
#[derive(Clone, Debug, Default)]
pub(super) struct CircuitLog {
    /// By uplink the one that is in use.
    open: Vec<Option<Carried>>,
    /// Those that are not in use any more, in the order in which that was seen.
    closed: Vec<Carried>,
    totals: CircuitTotals,
}

impl CircuitLog {
    pub fn new(uplinks: usize) -> Self {
        Self { open: vec![None; uplinks], ..Self::default() }
    }

    /// An uplink sends a packet over `circuit`, which ends at `circuit.last_used`.
    pub fn sent(&mut self, uplink: usize, circuit: Carried) {
        match &mut self.open[uplink] {
            Some(open) if open.begin == circuit.begin => {
                open.last_used = circuit.last_used;
                open.packets += circuit.packets;
                open.bytes += circuit.bytes;
            }
            open => {
                if let Some(over) = open.replace(circuit) {
                    self.totals.released(over.begin, over.up, over.end);
                    if self.closed.len() < MAX_CIRCUITS {
                        self.closed.push(over);
                    }
                }
                self.totals.granted += 1;
            }
        }
        self.totals.packets += circuit.packets;
        self.totals.bytes += circuit.bytes;
    }

    /// The circuits at `now`, in the order of their begins, and all together; nothing where none carried anything.
    pub fn figures(&self, now: SimTime, racks: &[String]) -> (Vec<CircuitFigures>, Option<CircuitTotals>) {
        if self.totals.granted == 0 {
            return (Vec::new(), None);
        }
        let mut totals = self.totals.clone();
        totals.ports = self.open.len() as u64;
        for open in self.open.iter().flatten() {
            if open.end <= now {
                totals.released(open.begin, open.up, open.end);
            } else {
                totals.still_open(open.begin, Some(open.up));
            }
        }
        let mut all: Vec<Carried> = self.closed.iter().chain(self.open.iter().flatten()).copied().collect();
        all.sort_by_key(|circuit| (circuit.begin, circuit.from, circuit.switch));
        all.truncate(MAX_CIRCUITS);
        let figures = |circuit: Carried| CircuitFigures {
            from: racks[circuit.from as usize].clone(),
            to: racks[circuit.to as usize].clone(),
            input: circuit.switch,
            output: circuit.switch,
            wavelength: 0,
            asked: circuit.begin,
            granted: circuit.begin,
            up: Some(circuit.up),
            last_used: Some(circuit.last_used),
            released: (circuit.end <= now).then_some(circuit.end),
            evicted: false,
            scheduled: true,
            packets: circuit.packets,
            bytes: circuit.bytes,
        };
        (all.into_iter().map(figures).collect(), Some(totals))
    }
}
