//! One client's simulation: takes its lines, answers its turns. Knows nothing of sockets.

use super::mapping::TaskMapping;
use super::protocol::{self, Command, LineError, Message, format_time};
use netsim::engine::{self, Workload};
use netsim::network::{Delivery, FlowId, HostIndex, Network, Token};
use netsim::time::SimTime;
use std::collections::{BTreeMap, VecDeque};
use thiserror::Error;

/// A turn's answer stays below this: Dimemas reads at most 500 bytes of one and puts no lines together.
const ANSWER_BYTES: usize = 500;
/// So many messages may be announced whose completion the client was not told of. A client takes turns long before: a
/// program of 65,536 tasks has some messages a task under way at once.
pub const MAX_OPEN_MESSAGES: usize = 1 << 20;
/// So many pairs of tasks may send to each other: a job of 1,024 tasks, each with each.
const MAX_FLOWS: usize = 1 << 20;
/// No more completions than this in an answer; eight at once made a real client hang.
const ANSWER_COMPLETIONS: usize = 3;
const END: &str = "END\n";

/// Why a line was not followed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SessionError {
    /// The line is none of the protocol. It changed nothing, and the client may go on.
    #[error(transparent)]
    Line(#[from] LineError),
    /// The message has no place in the fabric. Its completion would never come: the client cannot go on.
    #[error("{0}")]
    NoHost(String),
    /// More messages are open than the server keeps. The client cannot go on.
    #[error(
        "{MAX_OPEN_MESSAGES} messages are announced and not completed: no client may have more of them open at once"
    )]
    TooManyMessages,
    /// More pairs of tasks send than the server keeps. The client cannot go on.
    #[error("more than {MAX_FLOWS} pairs of tasks send to each other")]
    TooManyFlows,
    /// Messages are still under way at the end of all simulated times.
    #[error("messages are still under way after 150 days of simulated time: the fabric is too slow for them")]
    Endless,
}

/// What a line makes the server do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing; the client goes on.
    Listen,
    /// Send this; it is the client's turn again.
    Say(String),
    /// The client has finished.
    Finished,
}

/// What was counted in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionFigures {
    /// Messages that left.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Completions that the client was told of.
    pub completed: u64,
    /// Turns that were answered.
    pub turns: u64,
    /// Messages that should have left before the present, and left at the present.
    pub late: u64,
    /// Messages with a negative size, taken as 2 to 4 GiB.
    pub wrapped: u64,
    /// How far the simulation came.
    pub reached: SimTime,
}

struct UnderWay {
    message: Message,
    left: SimTime,
}

/// The client's tasks, as a workload: it is done whenever something has arrived.
struct Tasks {
    mapping: TaskMapping,
    /// By source and destination, tasks as the client numbers them.
    flows: BTreeMap<(u32, u32), FlowId>,
    /// Messages that have not left yet, in the order in which they will.
    leaving: BTreeMap<(SimTime, u64), Message>,
    under_way: BTreeMap<u64, UnderWay>,
    arrived: Vec<Delivery>,
}

/// One client's simulation on a network of its own.
pub struct Session<N> {
    network: N,
    tasks: Tasks,
    /// Completions of the last instant that the client was not yet told of.
    due: VecDeque<String>,
    /// What the client was told: nothing before it can happen any more.
    present: SimTime,
    stop: Option<SimTime>,
    /// Whether the client is told when the simulation has come to its stop.
    answers_stops: bool,
    next_token: u64,
    figures: SessionFigures,
}

impl<N: Network> Session<N> {
    /// A session at time 0 of `network`.
    pub fn new(network: N, mapping: TaskMapping) -> Self {
        Self {
            network,
            tasks: Tasks {
                mapping,
                flows: BTreeMap::new(),
                leaving: BTreeMap::new(),
                under_way: BTreeMap::new(),
                arrived: Vec::new(),
            },
            due: VecDeque::new(),
            present: SimTime::ZERO,
            stop: None,
            answers_stops: false,
            next_token: 0,
            figures: SessionFigures::default(),
        }
    }

    /// From now on, a turn in which the simulation comes to the client's stop without a completion says `STOP` with its time.
    #[must_use]
    pub fn answering_stops(mut self, answers: bool) -> Self {
        self.answers_stops = answers;
        self
    }

    /// What was counted so far.
    pub fn figures(&self) -> SessionFigures {
        SessionFigures { reached: self.present, ..self.figures }
    }

    /// Messages whose completion the client was not told of.
    pub fn open_messages(&self) -> usize {
        self.tasks.leaving.len() + self.tasks.under_way.len() + self.due.len()
    }

    /// Takes a line of the client, without its line break.
    ///
    /// # Errors
    /// When it is none of the protocol (then nothing changed), or a message has no place in the fabric.
    pub fn line(&mut self, line: &str) -> Result<Answer, SessionError> {
        match Command::parse(line)? {
            Command::Send(message) | Command::ReadyToRecv(message) => self.send(message)?,
            Command::OkToSend => {}
            Command::Stop(until) => self.stop = Some(until),
            Command::End => return Ok(Answer::Say(self.turn()?)),
            Command::Finish => return Ok(Answer::Finished),
        }
        Ok(Answer::Listen)
    }

    fn send(&mut self, message: Message) -> Result<(), SessionError> {
        if self.open_messages() >= MAX_OPEN_MESSAGES {
            return Err(SessionError::TooManyMessages);
        }
        let nodes = self.network.hosts();
        for task in [message.source, message.destination] {
            self.tasks.mapping.host(task, nodes).map_err(SessionError::NoHost)?;
        }
        let flows = &self.tasks.flows;
        if flows.len() >= MAX_FLOWS && !flows.contains_key(&(message.source, message.destination)) {
            return Err(SessionError::TooManyFlows);
        }
        self.figures.messages += 1;
        self.figures.bytes += message.bytes;
        self.figures.wrapped += u64::from(message.wrapped);
        self.figures.late += u64::from(message.at < self.present);
        let at = message.at.max(self.present);
        self.tasks.leaving.insert((at, self.next_token), message);
        self.next_token += 1;
        Ok(())
    }

    /// The server's turn: the completions of the first instant until the client's stop, a few at a time.
    fn turn(&mut self) -> Result<String, SessionError> {
        self.figures.turns += 1;
        let stop = self.stop.take();
        if self.due.is_empty()
            && let Some(until) = stop
        {
            self.advance(until)?;
        }
        let mut answer = String::new();
        for _ in 0..ANSWER_COMPLETIONS {
            match self.due.front() {
                Some(line) if answer.len() + line.len() + END.len() < ANSWER_BYTES => {
                    answer.push_str(line);
                    self.due.pop_front();
                    self.figures.completed += 1;
                }
                _ => break,
            }
        }
        let reached = stop.filter(|until| self.answers_stops && answer.is_empty() && *until <= self.present);
        answer.extend(reached.map(|until| format!("STOP {}\n", format_time(until))));
        answer.push_str(END);
        Ok(answer)
    }

    /// Simulates up to the first instant, not later than `until`, at which messages are complete. A stop beyond all
    /// times (Dimemas has nothing left to do but wait) moves the present no further than the last thing that happened.
    fn advance(&mut self, until: SimTime) -> Result<(), SessionError> {
        let (beyond, until) = (until, until.min(SimTime::LATEST));
        while self.tasks.arrived.is_empty() {
            let next = engine::next_time(&self.network, &self.tasks);
            let Some(at) = next.filter(|at| *at <= until) else {
                if beyond > until && next.is_some() {
                    return Err(SessionError::Endless);
                }
                if beyond < SimTime::MAX {
                    self.present = self.present.max(until);
                }
                return Ok(());
            };
            engine::run(&mut self.network, &mut self.tasks, at);
            self.present = self.present.max(at);
        }
        for delivery in self.tasks.arrived.drain(..) {
            if let Some(UnderWay { message, left }) = self.tasks.under_way.remove(&delivery.token.0) {
                self.due.push_back(protocol::completed(&message, left, delivery.at));
            }
        }
        Ok(())
    }
}

impl<N: Network> Workload<N> for Tasks {
    fn next_tick(&self, _: &N) -> Option<SimTime> {
        self.leaving.first_key_value().map(|((at, _), _)| *at)
    }

    /// The first message that waits for its time leaves.
    fn tick(&mut self, _: SimTime, network: &mut N) {
        let Some(((left, token), message)) = self.leaving.pop_first() else { return };
        let nodes = network.hosts();
        let ends = (self.mapping.host(message.source, nodes), self.mapping.host(message.destination, nodes));
        let (Ok(source), Ok(destination)) = ends else { return };
        let flow = self.flow((message.source, message.destination), (source, destination), network);
        network.send(left, flow, message.bytes, Token(token));
        self.under_way.insert(token, UnderWay { message, left });
    }

    fn delivered(&mut self, delivery: &Delivery, _: &mut N) {
        self.arrived.push(*delivery);
    }

    fn is_done(&self) -> bool {
        !self.arrived.is_empty()
    }
}

impl Tasks {
    /// The flow from one task to another: all their messages share it, as processes of MPI share a connection.
    fn flow(&mut self, tasks: (u32, u32), hosts: (HostIndex, HostIndex), network: &mut impl Network) -> FlowId {
        if let Some(flow) = self.flows.get(&tasks) {
            return *flow;
        }
        if hosts.0 == hosts.1 {
            let flow = network.open_flow(hosts.0, hosts.1);
            self.flows.insert(tasks, flow);
            return flow;
        }
        let (there, back) = network.open_connection(hosts.0, hosts.1);
        self.flows.insert(tasks, there);
        self.flows.insert((tasks.1, tasks.0), back);
        there
    }
}
