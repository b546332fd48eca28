//! A program as a workload of a network.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use netsim::engine::{self, End, Workload};
use netsim::network::{Delivery, FlowId, HostIndex, Network, Token};
use netsim::time::SimTime;
use netsim::units::DurationPs;

use crate::background::{BACKGROUND, Background};
use crate::builder::{MatchBy, Milestone, Operation, OperationId, Placed, Program, RankId};
use crate::connections::Connections;
use crate::due::{CpuIndex, Due, DueEvents};
use crate::matching::{Envelope, Matching};
use crate::stuck::StuckError;

/// How a program is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What a send and a receive take of their rank's CPU: LogGOPSim's `o`.
    pub overhead: DurationPs,
    /// By how much calculations are longer.
    pub compute_factor: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { overhead: DurationPs::ZERO, compute_factor: 1.0 }
    }
}

/// When a message was the network's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageTimes {
    /// The send.
    pub send: OperationId,
    /// When it was handed over.
    pub sent: SimTime,
    /// When its last byte had arrived.
    pub delivered: SimTime,
}

/// What a CPU does.
#[derive(Debug, Default)]
struct Cpu {
    is_busy: bool,
    ready: Ready,
}

/// Operations that are ready: whether each calculates, and which it is. The least comes first, and mostly there is no other one.
#[derive(Debug, Default)]
struct Ready {
    first: Option<(bool, OperationId)>,
    others: BinaryHeap<Reverse<(bool, OperationId)>>,
}

impl Ready {
    fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn push(&mut self, operation: (bool, OperationId)) {
        match self.first {
            None => self.first = Some(operation),
            Some(first) => {
                self.first = Some(first.min(operation));
                self.others.push(Reverse(first.max(operation)));
            }
        }
    }

    fn pop(&mut self) -> Option<(bool, OperationId)> {
        let next = self.others.pop().map(|Reverse(next)| next);
        std::mem::replace(&mut self.first, next)
    }
}

/// What is known of an operation while its program runs: 16 bytes, so that those of a rank that follow each other lie in few lines of the cache.
#[derive(Clone, Copy)]
struct Run {
    /// What it still waits for; [`Run::ENDED`] once it has ended.
    open: u32,
    cpu: CpuIndex,
    /// When the message of a send that has ended was sent.
    sent: SimTime,
}

impl Run {
    const ENDED: u32 = u32::MAX;
}

/// Runs a program over a network.
pub struct Driver<'p> {
    program: &'p Program,
    options: Options,
    /// By rank.
    hosts: &'p [HostIndex],
    /// By operation.
    runs: Vec<Run>,
    cpus: Vec<Cpu>,
    due: DueEvents,
    flows: Connections,
    matching: Matching,
    /// Messages that are under way.
    in_flight: u64,
    left: usize,
    messages: Vec<MessageTimes>,
    /// When the last operation of each rank ended.
    ranks_end: Vec<SimTime>,
    truncated: Option<StuckError>,
    background: Option<Background>,
}

impl<'p> Driver<'p> {
    /// A run of `program`, whose ranks are on `hosts`, one for each.
    #[must_use]
    pub fn new(program: &'p Program, hosts: &'p [HostIndex], options: Options) -> Self {
        let (cpus, cpu_of) = cpus(program);
        let mut runs: Vec<Run> = cpu_of.into_iter().map(|cpu| Run { open: 0, cpu, sent: SimTime::ZERO }).collect();
        for (_, _, waiting) in &program.waits {
            runs[waiting.index()].open += 1;
        }
        let mut due = DueEvents::default();
        for id in (0..).zip(&runs).filter(|(_, run)| run.open == 0).map(|(index, _)| OperationId(index)) {
            due.push(begin(program, options, id, SimTime::ZERO), Due::Earliest(id));
        }
        let takes_any = |placed: &Placed| matches!(placed.operation, Operation::Receive { from: None, .. });
        Self {
            options,
            hosts,
            left: runs.len(),
            runs,
            cpus,
            due,
            flows: Connections::new(program.ranks()),
            matching: Matching::new(program.operations.iter().any(takes_any)),
            in_flight: 0,
            messages: Vec::new(),
            ranks_end: vec![SimTime::ZERO; program.ranks() as usize],
            truncated: None,
            background: None,
            program,
        }
    }

    /// The same with traffic beside, which ends when the program does.
    #[must_use]
    pub fn beside(self, background: Background) -> Self {
        Self { background: Some(background), ..self }
    }

    /// Runs it to its end: when that is.
    ///
    /// # Errors
    /// If it does not come to its end, or a message is not received or larger than what is received.
    pub fn run(&mut self, network: &mut impl Network) -> Result<SimTime, StuckError> {
        let end = engine::run(network, self, SimTime::LATEST);
        if let Some(truncated) = self.truncated.take() {
            return Err(truncated);
        }
        match end {
            End::Done(_) if self.is_stuck() => Err(self.stuck()),
            End::Done(at) => match self.matching.left() {
                Some(send) => Err(self.not_received(send)),
                None => Ok(at),
            },
            End::Limit(_) => Err(StuckError::Endless(SimTime::LATEST)),
            End::Idle if self.in_flight == 0 => Err(self.stuck()),
            End::Idle => Err(StuckError::Lost(self.in_flight)),
        }
    }

    /// What was sent beside.
    #[must_use]
    pub const fn background(&self) -> Option<&Background> {
        self.background.as_ref()
    }

    /// Whether nothing of the program can happen any more, whatever is sent beside, and it is not through.
    fn is_stuck(&self) -> bool {
        self.left > 0 && self.due.next_time().is_none() && self.in_flight == 0
    }

    /// Whether nothing more has to happen.
    fn is_through(&self) -> bool {
        let stuck = self.background.is_some() && self.is_stuck();
        (self.left == 0 && self.in_flight == 0) || self.truncated.is_some() || stuck
    }

    /// The messages that arrived, in the order in which they did.
    #[must_use]
    pub fn messages(&self) -> &[MessageTimes] {
        &self.messages
    }

    /// When the last operation of each rank ended.
    #[must_use]
    pub fn ranks_end(&self) -> &[SimTime] {
        &self.ranks_end
    }

    fn placed(&self, id: OperationId) -> (RankId, Operation) {
        let placed = &self.program.operations[id.index()];
        (placed.rank, placed.operation)
    }

    /// All that an operation waited for has come to pass.
    fn ready(&mut self, id: OperationId, now: SimTime) {
        let (rank, operation) = self.placed(id);
        match operation {
            Operation::Receive { from, bytes, tag } => {
                self.tell(id, Milestone::Begun, now);
                let found = match from {
                    Some(from) => self.matching.post(id, self.envelope(from, rank, tag, bytes)),
                    None => self.matching.post_any(id, rank, tag),
                };
                if let Some(send) = found {
                    self.matched(id, send, now);
                }
            }
            Operation::Calculate { .. } | Operation::Send { .. } => self.queue(id, now),
        }
    }

    fn envelope(&self, from: RankId, to: RankId, tag: u64, bytes: u64) -> Envelope {
        let bytes = (self.program.match_by == MatchBy::TagAndBytes).then_some(bytes);
        Envelope { to, from, tag, bytes }
    }

    /// A receive has its message.
    fn matched(&mut self, receive: OperationId, send: OperationId, now: SimTime) {
        let (from, to) = (self.placed(send), self.placed(receive));
        if let (Operation::Send { bytes: sent, .. }, Operation::Receive { bytes: takes, .. }) = (from.1, to.1)
            && sent > takes
            && self.truncated.is_none()
        {
            self.truncated = Some(StuckError::Truncated { from: from.0, to: to.0, sent, takes, send, receive });
        }
        self.queue(receive, now);
    }

    /// An operation waits for its CPU.
    fn queue(&mut self, id: OperationId, now: SimTime) {
        let cpu = self.runs[id.index()].cpu;
        let of = &mut self.cpus[cpu.0 as usize];
        if of.ready.is_empty() && !of.is_busy {
            self.due.push(now, Due::Choose(cpu));
        }
        let operation = self.program.operations[id.index()].operation;
        of.ready.push((matches!(operation, Operation::Calculate { .. }), id));
    }

    /// A CPU that is free takes its next operation, if it has one.
    fn choose(&mut self, of: CpuIndex, now: SimTime, network: &mut impl Network) {
        let cpu = &mut self.cpus[of.0 as usize];
        if cpu.is_busy {
            return;
        }
        let Some((_, id)) = cpu.ready.pop() else { return };
        let operation = self.program.operations[id.index()].operation;
        let length_ps = match operation {
            Operation::Calculate { ns } => scaled_ps(ns, self.options.compute_factor),
            Operation::Send { .. } | Operation::Receive { .. } => self.options.overhead.ps(),
        };
        if length_ps > 0 {
            cpu.is_busy = true;
            self.due.push(now.plus_ps(length_ps), Due::Ended(id));
        } else if !cpu.ready.is_empty() {
            self.due.push(now, Due::Choose(of));
        }
        if !matches!(operation, Operation::Receive { .. }) {
            self.tell(id, Milestone::Begun, now);
        }
        if length_ps == 0 {
            self.ended(id, now, network);
        }
    }

    fn ended(&mut self, id: OperationId, now: SimTime, network: &mut impl Network) {
        let (rank, operation) = self.placed(id);
        if let Operation::Send { to, bytes, .. } = operation {
            let flow = self.flow(rank, to, network);
            self.runs[id.index()].sent = now;
            self.in_flight += 1;
            network.send(now, flow, bytes, Token(id.0.into()));
        }
        self.runs[id.index()].open = Run::ENDED;
        self.left -= 1;
        let end = &mut self.ranks_end[rank.0 as usize];
        *end = now.max(*end);
        self.tell(id, Milestone::Ended, now);
    }

    /// Those that waited for this may be due at once: they are put among what is, so that no chain of operations is deep.
    fn tell(&mut self, id: OperationId, moment: Milestone, now: SimTime) {
        for waiting in self.program.waiting(id, moment) {
            let open = &mut self.runs[waiting.index()].open;
            *open -= 1;
            if *open == 0 {
                let at = begin(self.program, self.options, waiting, now);
                self.due.push(at, Due::Earliest(waiting));
            }
        }
    }

    /// A rank has a connection to each rank to which it sends. In a list of flows each has its own.
    fn flow(&mut self, from: RankId, to: RankId, network: &mut impl Network) -> FlowId {
        let (source, destination) = (self.hosts[from.0 as usize], self.hosts[to.0 as usize]);
        if self.program.match_by == MatchBy::Nothing {
            return if source == destination {
                network.open_flow(source, destination)
            } else {
                network.open_connection(source, destination).0
            };
        }
        if let Some(flow) = self.flows.get(from, to) {
            return flow;
        }
        if source == destination {
            let flow = network.open_flow(source, destination);
            self.flows.insert(from, to, flow);
            return flow;
        }
        let (there, back) = network.open_connection(source, destination);
        self.flows.insert(from, to, there);
        self.flows.insert(to, from, back);
        there
    }

    fn not_received(&self, operation: OperationId) -> StuckError {
        let (from, sent) = self.placed(operation);
        match sent {
            Operation::Send { to, tag, .. } => StuckError::NotReceived { from, to, tag, operation },
            _ => StuckError::Circle { rank: from, circle: vec![operation] },
        }
    }

    /// What the first operation waits for that has not ended: a message, or a circle of operations.
    fn stuck(&self) -> StuckError {
        let mut before: HashMap<OperationId, OperationId> = HashMap::new();
        for (of, _, waiting) in &self.program.waits {
            if self.runs[of.index()].open != Run::ENDED {
                before.entry(*waiting).or_insert(*of);
            }
        }
        let first = self.runs.iter().position(|run| run.open != Run::ENDED).unwrap_or(0);
        let mut at = OperationId(u32::try_from(first).unwrap_or(u32::MAX));
        let mut way = Vec::new();
        let mut place = HashMap::new();
        while let Some(next) = before.get(&at) {
            if let Some(begin) = place.insert(at, way.len()) {
                return StuckError::Circle { rank: self.placed(at).0, circle: way.split_off(begin) };
            }
            way.push(at);
            at = *next;
        }
        match self.placed(at) {
            (rank, Operation::Receive { from, tag, .. }) => StuckError::NoMessage { rank, from, tag, operation: at },
            (rank, ..) => StuckError::Circle { rank, circle: vec![at] },
        }
    }
}

impl<N: Network> Workload<N> for Driver<'_> {
    fn next_tick(&self, _: &N) -> Option<SimTime> {
        let beside = self.background.as_ref().and_then(Background::next_time);
        self.due.next_time().into_iter().chain(beside).min()
    }

    fn tick(&mut self, now: SimTime, network: &mut N) {
        if self.due.next_time().is_none_or(|at| at > now) {
            self.background.iter_mut().for_each(|background| background.send(now, network));
            return;
        }
        while let Some(due) = self.due.pop() {
            match due {
                Due::Earliest(id) => self.ready(id, now),
                Due::Ended(id) => {
                    let cpu = self.runs[id.index()].cpu;
                    self.cpus[cpu.0 as usize].is_busy = false;
                    self.ended(id, now, network);
                    self.due.push(now, Due::Choose(cpu));
                }
                Due::Choose(cpu) => self.choose(cpu, now, network),
            }
            // What else is due now, unless something arrives before.
            let goes_on = self.due.next_time() == Some(now) && network.next_event().is_none_or(|at| at > now);
            if !goes_on || self.is_through() {
                return;
            }
        }
    }

    fn delivered(&mut self, delivery: &Delivery, _: &mut N) {
        if delivery.token == BACKGROUND {
            return;
        }
        let Ok(send) = u32::try_from(delivery.token.0).map(OperationId) else { return };
        self.in_flight -= 1;
        self.messages.push(MessageTimes { send, sent: self.runs[send.index()].sent, delivered: delivery.at });
        let (from, operation) = self.placed(send);
        let Operation::Send { to, tag, bytes } = operation else { return };
        let end = &mut self.ranks_end[to.0 as usize];
        *end = delivery.at.max(*end);
        if self.program.match_by != MatchBy::Nothing
            && let Some(receive) = self.matching.arrive(send, self.envelope(from, to, tag, bytes))
        {
            self.matched(receive, send, delivery.at);
        }
    }

    fn is_done(&self) -> bool {
        self.is_through()
    }
}

/// The CPUs of a program, and that of each operation.
fn cpus(program: &Program) -> (Vec<Cpu>, Vec<CpuIndex>) {
    let of = |placed: &Placed| (placed.rank, placed.cpu);
    let mut numbers: Vec<_> = program.operations.iter().map(of).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let index = |placed: &Placed| {
        let place = numbers.partition_point(|other| *other < of(placed));
        CpuIndex(u32::try_from(place).unwrap_or(u32::MAX))
    };
    let cpu_of = program.operations.iter().map(index).collect();
    (numbers.iter().map(|_| Cpu::default()).collect(), cpu_of)
}

/// When an operation is due whose last cause came to pass at `now`.
fn begin(program: &Program, options: Options, id: OperationId, now: SimTime) -> SimTime {
    let placed = &program.operations[id.index()];
    now.plus_ps(scaled_ps(placed.delay_ns, options.compute_factor)).max(placed.earliest)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "to the nearest picosecond; what is too long ends at the limit"
)]
fn scaled_ps(ns: u64, factor: f64) -> u64 {
    let ps = ns.saturating_mul(1_000);
    if factor == 1.0 { ps } else { (ps as f64 * factor).round() as u64 }
}
