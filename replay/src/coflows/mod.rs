//! Coflows under schedulers, each by itself or as they arrive, and over fabrics.

mod fabric;

pub use fabric::{CoflowFabricError, run_on_fabric};

use std::fmt;

use coflow::circuit::{Birkhoff, Circuit, MatrixScheduler, MaxWeight, Priority, Rotor, Solstice, all_stop, sunflow};
use coflow::packet::{Clock, Completion, EqualShare, Madd, MaxMin, Order, RateAllocator, coflowsim_sebf, simulate};
use coflow::{CoflowError, Workload, bounds};
use netsim::time::SimTime;
use netsim::units::{DurationPs, Rate};
use rayon::prelude::*;

/// Who decides when a flow may send, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheduler {
    /// Max-min fairness among flows.
    Fair,
    /// Each port's rate in equal parts, the smaller of a flow's two.
    EqualShare,
    /// Coflows by arrival.
    Fifo,
    /// Coflows by their smallest bottleneck.
    Varys,
    /// The same with `CoflowSim`'s arithmetic.
    VarysCoflowSim,
    /// Circuits one by one, coflows by their smallest bottleneck.
    Sunflow,
    /// Circuits one by one, coflows by arrival.
    SunflowFifo,
    /// All circuits anew, by halved slices.
    Solstice,
    /// All circuits anew, by the matchings of Birkhoff and von Neumann.
    Birkhoff,
    /// All circuits anew, by the matching with the most that waits.
    MaxWeight,
    /// All ports in turn.
    Rotor,
}

impl Scheduler {
    /// All, packet-switched ones first.
    pub const ALL: [Self; 11] = [
        Self::Fair,
        Self::EqualShare,
        Self::Fifo,
        Self::Varys,
        Self::VarysCoflowSim,
        Self::Sunflow,
        Self::SunflowFifo,
        Self::Solstice,
        Self::Birkhoff,
        Self::MaxWeight,
        Self::Rotor,
    ];

    /// Its name on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::EqualShare => "equal-share",
            Self::Fifo => "fifo",
            Self::Varys => "varys",
            Self::VarysCoflowSim => "varys-coflowsim",
            Self::Sunflow => "sunflow",
            Self::SunflowFifo => "sunflow-fifo",
            Self::Solstice => "solstice",
            Self::Birkhoff => "birkhoff",
            Self::MaxWeight => "max-weight",
            Self::Rotor => "rotor",
        }
    }

    /// Whether it sets up circuits.
    #[must_use]
    pub const fn is_of_circuits(self) -> bool {
        !matches!(self, Self::Fair | Self::EqualShare | Self::Fifo | Self::Varys | Self::VarysCoflowSim)
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The switch and its clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switch {
    /// The rate of each port, in each direction.
    pub rate: Rate,
    /// How long a circuit is set up.
    pub delay: DurationPs,
    /// How long `max-weight` and `rotor` hold a matching.
    pub slot: DurationPs,
    /// When packet-switched schedulers look at what is there; with a tick `varys` keeps the order in which coflows began, as
    /// `CoflowSim` does.
    pub clock: Clock,
    /// Whether each coflow has the switch to itself.
    pub alone: bool,
}

/// Circuits that a scheduler has set up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CircuitTotals {
    /// How many.
    pub count: u64,
    /// Seconds of ports in which they were set up.
    pub set_up_s: f64,
    /// Seconds of ports in which they carried bytes.
    pub busy_s: f64,
    /// Seconds of ports in which they were there, set-up among it.
    pub held_s: f64,
}

impl CircuitTotals {
    fn add(&mut self, circuit: Circuit) {
        let seconds = |span: DurationPs| SimTime(span.ps()).as_secs_f64();
        self.count += 1;
        self.set_up_s += seconds(circuit.up - circuit.start);
        self.busy_s += seconds(circuit.busy);
        self.held_s += seconds(circuit.end - circuit.start);
    }

    fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            set_up_s: self.set_up_s + other.set_up_s,
            busy_s: self.busy_s + other.busy_s,
            held_s: self.held_s + other.held_s,
        }
    }
}

/// What a scheduler or a fabric made of the coflows.
#[derive(Clone, Debug, PartialEq)]
pub struct CoflowRun {
    /// The name of the scheduler or the fabric's experiment.
    pub name: String,
    /// Whether the ports of one switch were the network, so that their bounds hold.
    pub over_ports: bool,
    /// When each coflow was complete, in the workload's order.
    pub completions: Vec<Completion>,
    /// Its circuits, if it has any.
    pub circuits: Option<CircuitTotals>,
}

/// What no scheduler can beat, coflow by coflow: over packets, over circuits.
#[must_use]
pub fn bounds_of(workload: &Workload, switch: &Switch) -> Vec<(DurationPs, DurationPs)> {
    let of =
        |coflow| (bounds::packet_bound(coflow, switch.rate), bounds::circuit_bound(coflow, switch.rate, switch.delay));
    workload.coflows().par_iter().map(of).collect()
}

/// Runs the coflows under a scheduler.
///
/// # Errors
/// If the simulation could not come to an end.
pub fn run(workload: &Workload, switch: &Switch, scheduler: Scheduler) -> Result<CoflowRun, CoflowError> {
    let (completions, circuits) = if switch.alone {
        let one = |index| run_together(&workload.alone(index), switch, scheduler);
        let runs = (0..workload.coflows().len()).into_par_iter().map(one).collect::<Result<Vec<_>, _>>()?;
        let circuits = runs.iter().fold(CircuitTotals::default(), |sum, (_, circuits)| sum.and(*circuits));
        (runs.into_iter().flat_map(|(completions, _)| completions).collect(), circuits)
    } else {
        run_together(workload, switch, scheduler)?
    };
    Ok(CoflowRun {
        name: scheduler.to_string(),
        over_ports: true,
        completions,
        circuits: scheduler.is_of_circuits().then_some(circuits),
    })
}

fn run_together(
    workload: &Workload,
    switch: &Switch,
    scheduler: Scheduler,
) -> Result<(Vec<Completion>, CircuitTotals), CoflowError> {
    let &Switch { rate, delay, slot, clock, .. } = switch;
    let mut circuits = CircuitTotals::default();
    let packets = |allocator: &mut dyn RateAllocator| simulate(workload, rate, clock, allocator);
    let mut matchings = |scheduler: &mut dyn MatrixScheduler| {
        all_stop(workload, rate, delay, scheduler, |circuit| circuits.add(circuit))
    };
    let shortest = if delay == DurationPs::ZERO { DurationPs::from_ms(1) } else { delay };
    let bottleneck = if clock.tick == DurationPs::ZERO { Order::LeftBottleneck } else { Order::FirstBottleneck };
    let completions = match scheduler {
        Scheduler::Fair => packets(&mut MaxMin::default()),
        Scheduler::EqualShare => packets(&mut EqualShare),
        Scheduler::Fifo => packets(&mut Madd { order: Order::Arrival }),
        Scheduler::Varys => packets(&mut Madd { order: bottleneck }),
        Scheduler::VarysCoflowSim => coflowsim_sebf(workload, rate, clock),
        Scheduler::Solstice => matchings(&mut Solstice { shortest }),
        Scheduler::Birkhoff => matchings(&mut Birkhoff),
        Scheduler::MaxWeight => matchings(&mut MaxWeight { slot }),
        Scheduler::Rotor => matchings(&mut Rotor { slot }),
        Scheduler::Sunflow => sunflow(workload, rate, delay, Priority::Shortest, |circuit| circuits.add(circuit)),
        Scheduler::SunflowFifo => sunflow(workload, rate, delay, Priority::Arrival, |circuit| circuits.add(circuit)),
    };
    completions.map(|completions| (completions, circuits))
}
