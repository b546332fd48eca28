//! The hosts as sources of messages, in the order of time.

use super::arrivals::Gaps;
use super::config::{Arrivals, Flows, Plan};
use super::table::TimedMessage;
use super::{Destinations, Drawn, draw, unit};
use crate::fabric::packet::{Message, ServiceLevel};
use crate::kernel::random::mix;
use crate::kernel::{EventQueue, Phase, Place};
use crate::network::{HostIndex, Token};
use crate::time::SimTime;

/// The state of one host: 16 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source {
    /// When it hands over its next message.
    moment: u64,
    /// How many it has handed over.
    count: u64,
}

/// All messages of a run, one after the other.
pub enum Sources {
    /// Drawn.
    Drawn(Box<DrawnSources>),
    /// From a table.
    Table {
        /// The messages in the order of time.
        messages: Vec<TimedMessage>,
        /// Which is next.
        next: usize,
        /// How many each host has handed over.
        counts: Vec<u64>,
        /// What hashes of flows take for one flow.
        flows: Flows,
    },
}

/// Hosts that draw their messages.
pub struct DrawnSources {
    plan: Plan,
    seed: u64,
    gaps: Gaps,
    destinations: Destinations,
    sources: Vec<Source>,
    queue: EventQueue<u32>,
}

impl Sources {
    /// Hosts that draw their messages.
    #[must_use]
    pub fn drawn(plan: &Plan, destinations: Destinations, seed: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts saturate")]
        let horizon = (plan.gap_ps * 4.0) as u64;
        let mut sources = DrawnSources {
            plan: plan.clone(),
            seed,
            gaps: Gaps::new(plan, seed),
            destinations,
            sources: vec![Source::default(); plan.hosts as usize],
            queue: EventQueue::new(horizon.clamp(1 << 20, 1 << 50)),
        };
        for host in 0..plan.hosts {
            if !sources.destinations.is_silent(host) {
                sources.schedule(host);
            }
        }
        Self::Drawn(Box::new(sources))
    }

    /// Messages of a table, in the order of time.
    #[must_use]
    pub fn table(messages: Vec<TimedMessage>, hosts: u32, flows: Flows) -> Self {
        Self::Table { messages, next: 0, counts: vec![0; hosts as usize], flows }
    }

    /// The longest message of a table, in bytes.
    #[must_use]
    pub fn longest(&self) -> Option<u64> {
        match self {
            Self::Drawn(_) => None,
            Self::Table { messages, .. } => messages.iter().map(|message| message.bytes).max(),
        }
    }

    /// When the next message is handed over.
    #[must_use]
    pub fn next_time(&self) -> Option<SimTime> {
        match self {
            Self::Drawn(sources) => sources.queue.next_time(),
            Self::Table { messages, next, .. } => messages.get(*next).map(|message| message.at),
        }
    }

    /// The next message, if it is handed over at `now`.
    pub fn next_at(&mut self, now: SimTime) -> Option<Message> {
        match self {
            Self::Drawn(sources) => sources.next_at(now),
            Self::Table { messages, next, counts, flows } => {
                let timed = messages.get(*next).filter(|message| message.at == now)?;
                *next += 1;
                let count = &mut counts[timed.source as usize];
                let message = message(timed.source, timed.destination, timed.bytes, timed.level, *count, *flows);
                *count += 1;
                Some(message)
            }
        }
    }
}

impl DrawnSources {
    /// Puts the next message of `host` into the queue.
    fn schedule(&mut self, host: u32) {
        let source = &mut self.sources[host as usize];
        source.moment = self.gaps.next(host, source.count, source.moment);
        let at = match self.plan.arrivals {
            Arrivals::Bernoulli => self.plan.link.cycle_ps(source.moment),
            Arrivals::Exponential | Arrivals::Fixed => source.moment,
        };
        // What would come after the end never comes.
        if at < self.plan.end_ps {
            self.queue.schedule(SimTime(at), Phase::Arrive, Place(host), host);
        }
    }

    fn next_at(&mut self, now: SimTime) -> Option<Message> {
        loop {
            let (_, host) = self.queue.pop_until(now)?;
            let count = self.sources[host as usize].count;
            self.sources[host as usize].count += 1;
            self.schedule(host);
            if let Some(destination) = self.destinations.destination(self.seed, host, count) {
                let level = self.level(host, count);
                return Some(message(host, destination, self.plan.bytes, level, count, self.plan.flows));
            }
        }
    }

    fn level(&self, host: u32, count: u64) -> ServiceLevel {
        match self.plan.levels.as_slice() {
            [(level, _)] => *level,
            levels => {
                let drawn = unit(draw(self.seed, Drawn::Level, host, count));
                let found = levels.iter().find(|(_, upper)| drawn < *upper).or(levels.last());
                found.map_or_else(ServiceLevel::default, |(level, _)| *level)
            }
        }
    }
}

/// A message; its token is its source x 2^40 + its number there, as the keys of packets.
fn message(source: u32, destination: u32, bytes: u64, level: ServiceLevel, count: u64, flows: Flows) -> Message {
    let token = (u64::from(source) << 40) | (count & ((1 << 40) - 1));
    let flow = match flows {
        Flows::Pair => (u64::from(source) << 32) | u64::from(destination),
        Flows::Message => mix(token),
    };
    Message { source: HostIndex(source), destination: HostIndex(destination), bytes, level, flow, token: Token(token) }
}
