//! What is to be sent.

use netsim::time::SimTime;
use netsim::units::{DurationPs, Rate};
use thiserror::Error;

/// The most ports that a switch may have: matrices of ports x ports are kept.
pub const MAX_PORTS: usize = 2_048;
/// The most flows of all coflows together.
pub(crate) const MAX_FLOWS: usize = 10_000_000;

/// The longest that a port may be busy, seconds: ten days.
const MAX_BUSY_S: f64 = 10.0 * 86_400.0;
/// The longest delay, tick or slice, seconds.
pub(crate) const MAX_DELAY_S: u64 = 100;

fn days(seconds: f64) -> String {
    format!("{:.1}", seconds / 86_400.0)
}

fn as_s(value: DurationPs) -> f64 {
    SimTime(value.ps()).as_secs_f64()
}

/// A port of the switch, which sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

impl PortId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Bytes from one port to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// The sender.
    pub from: PortId,
    /// The receiver.
    pub to: PortId,
    /// Bytes, which need not be whole: a reducer's are divided evenly among its mappers.
    pub bytes: f64,
}

/// Flows that somebody waits for as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Coflow {
    /// Its name in its file.
    pub id: String,
    /// When it arrives.
    pub arrival: SimTime,
    /// At least one flow, in the order of the file: reducer by reducer.
    pub flows: Vec<Flow>,
}

impl Coflow {
    /// All its bytes.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.flows.iter().map(|flow| flow.bytes).sum()
    }
}

/// Coflows over the ports of one switch, in the order in which they arrive.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    ports: usize,
    coflows: Vec<Coflow>,
}

/// Why coflows make no workload.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CoflowError {
    /// A number of ports that cannot be simulated.
    #[error("{ports} ports: from 1 to {MAX_PORTS} can be simulated")]
    Ports {
        /// How many were asked for.
        ports: usize,
    },
    /// A port that the switch does not have.
    #[error("coflow {id}: port {port}, but the switch has ports 0 to {}", ports - 1)]
    Port {
        /// The coflow.
        id: String,
        /// The port.
        port: usize,
        /// How many there are.
        ports: usize,
    },
    /// A coflow without flows, or a flow without bytes.
    #[error("coflow {id} {what}")]
    Flows {
        /// The coflow.
        id: String,
        /// What is wrong with its flows.
        what: &'static str,
    },
    /// More flows than can be kept.
    #[error("more than {MAX_FLOWS} flows")]
    TooManyFlows,
    /// Ports without a rate.
    #[error("ports need a rate: with an unlimited one every coflow is complete at once")]
    Unlimited,
    /// What a port has to send or to receive takes longer than a simulation may.
    #[error("a port would be busy for {} days, more than {}: take a higher rate or fewer coflows", days(*busy_s), days(MAX_BUSY_S))]
    TooLong {
        /// How long the busiest port takes, seconds.
        busy_s: f64,
    },
    /// A simulation that went on for longer than its clock reaches.
    #[error("coflow {id} is not complete after 150 days: take a higher rate, a shorter delay or fewer coflows")]
    Endless {
        /// The coflow.
        id: String,
    },
    /// A simulation of too many slots.
    #[error("more than {most} slots: hold matchings for longer, or take a higher rate or fewer coflows")]
    TooManySlots {
        /// How many there may be.
        most: u64,
    },
    /// A delay that is longer than a simulation may take.
    #[error("{what} of {} s: at most {MAX_DELAY_S} s", as_s(*value))]
    Delay {
        /// Which one.
        what: &'static str,
        /// How long.
        value: DurationPs,
    },
}

impl Workload {
    /// Coflows over `ports` ports; they are sorted by arrival, those that arrive together stay as they are.
    ///
    /// # Errors
    /// If a port is none of the switch, a coflow is empty, or a flow has no bytes.
    pub fn new(ports: usize, mut coflows: Vec<Coflow>) -> Result<Self, CoflowError> {
        if ports == 0 || ports > MAX_PORTS {
            return Err(CoflowError::Ports { ports });
        }
        let mut flows = 0;
        for coflow in &coflows {
            let wrong = |what| CoflowError::Flows { id: coflow.id.clone(), what };
            flows += coflow.flows.len();
            if coflow.flows.is_empty() {
                return Err(wrong("has no flow"));
            }
            for flow in &coflow.flows {
                if !(flow.bytes > 0.0 && flow.bytes <= 1e18) {
                    return Err(wrong("has a flow that is not of more than 0 and at most 1e18 bytes"));
                }
                let port = flow.from.index().max(flow.to.index());
                if port >= ports {
                    return Err(CoflowError::Port { id: coflow.id.clone(), port, ports });
                }
            }
            if coflow.arrival > SimTime::LATEST {
                return Err(wrong("arrives after 150 days"));
            }
        }
        if flows > MAX_FLOWS {
            return Err(CoflowError::TooManyFlows);
        }
        coflows.sort_by_key(|coflow| coflow.arrival);
        Ok(Self { ports, coflows })
    }

    /// Ports of the switch.
    #[must_use]
    pub const fn ports(&self) -> usize {
        self.ports
    }

    /// The coflows by arrival.
    #[must_use]
    pub fn coflows(&self) -> &[Coflow] {
        &self.coflows
    }

    /// Checks that a simulation at this rate comes to an end that its clock can tell.
    pub(crate) fn check(&self, rate: Rate, delays: &[(&'static str, DurationPs)]) -> Result<(), CoflowError> {
        if rate.bps().is_none() {
            return Err(CoflowError::Unlimited);
        }
        let mut busy = vec![[0.0; 2]; self.ports];
        for flow in self.coflows.iter().flat_map(|coflow| &coflow.flows) {
            busy[flow.from.index()][0] += flow.bytes;
            busy[flow.to.index()][1] += flow.bytes;
        }
        let busy_s = busy.into_iter().flatten().fold(0.0, f64::max) * 8.0 / bits_per_s(rate);
        if busy_s > MAX_BUSY_S {
            return Err(CoflowError::TooLong { busy_s });
        }
        match delays.iter().find(|(_, value)| value.ps() > MAX_DELAY_S * 1_000_000_000_000) {
            Some(&(what, value)) => Err(CoflowError::Delay { what, value }),
            None => Ok(()),
        }
    }

    /// The first `count` coflows.
    #[must_use]
    pub fn first(mut self, count: usize) -> Self {
        self.coflows.truncate(count);
        self
    }

    /// One coflow by itself, which arrives at 0.
    #[must_use]
    pub fn alone(&self, coflow: usize) -> Self {
        let only = Coflow { arrival: SimTime::ZERO, ..self.coflows[coflow].clone() };
        Self { ports: self.ports, coflows: vec![only] }
    }
}

/// How long bytes take at a rate, rounded up to a picosecond.
pub(crate) fn time_of(bytes: f64, rate: Rate) -> DurationPs {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most LONGEST, checked beforehand")]
    DurationPs((bytes * 8e12 / bits_per_s(rate)).ceil() as u64)
}

#[expect(clippy::cast_precision_loss, reason = "rates above 2^53 bit/s do not exist")]
pub(crate) fn bits_per_s(rate: Rate) -> f64 {
    rate.bps().unwrap_or(u64::MAX) as f64
}
