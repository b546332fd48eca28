//! How hosts draw their messages.

use super::arrivals::Gaps;
use super::config::{Arrivals, Flows};
use super::plan::Plan;
use super::table::MAX_PS;
use super::{Destinations, Drawn, draw, unit};
use crate::fabric::packet::{Message, ServiceLevel};
use crate::kernel::random::mix;
use crate::network::{HostIndex, Token};
use crate::time::SimTime;

/// The state of one host: 16 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source {
    /// When it hands over its next message.
    moment: u64,
    /// How many it has handed over.
    pub(super) count: u64,
}

/// How hosts draw their messages.
pub struct Drawing {
    pub(super) plan: Plan,
    pub(super) seed: u64,
    gaps: Gaps,
    pub(super) destinations: Destinations,
}

impl Plan {
    /// Whether hosts may hand over less than they draw.
    pub(super) const fn waits(&self) -> bool {
        self.injection_queue.is_some() || self.network_limit.is_some()
    }
}

impl Drawing {
    /// Messages of `plan`, drawn with `seed`.
    #[must_use]
    pub fn new(plan: &Plan, destinations: Destinations, seed: u64) -> Self {
        Self { plan: plan.clone(), seed, gaps: Gaps::new(plan, seed), destinations }
    }

    /// The same messages, measured by `plan`.
    pub(super) fn set_plan(&mut self, plan: &Plan) {
        self.plan = plan.clone();
    }

    /// When `host` hands over the message behind those of `source`; `None` if not before the run's end.
    pub(super) fn next_time(&self, host: u32, source: &mut Source) -> Option<SimTime> {
        if self.destinations.is_silent(host) || self.plan.count.is_some_and(|most| source.count >= most) {
            return None;
        }
        source.moment = self.gaps.next(host, source.count, source.moment);
        let at = match self.plan.arrivals {
            Arrivals::Bernoulli => self.plan.link.cycle_ps(source.moment),
            Arrivals::Exponential | Arrivals::Fixed => source.moment,
        };
        (at < self.plan.end_ps).then_some(SimTime(at))
    }

    /// Message `count` of `host`; `None` if it is left out.
    pub(super) fn message(&self, host: u32, count: u64) -> Option<Message> {
        let destination = self.destinations.destination(self.seed, host, count)?;
        let level = self.level(host, count);
        Some(message(host, destination, self.bytes(host, count), level, count, self.plan.flows))
    }

    /// How long message `count` of `host` is.
    fn bytes(&self, host: u32, count: u64) -> u64 {
        if self.plan.lengths.is_empty() {
            return self.plan.bytes;
        }
        let drawn = unit(draw(self.seed, Drawn::Length, host, count));
        let found = self.plan.lengths.iter().find(|(_, upper)| drawn < *upper).or(self.plan.lengths.last());
        found.map_or(self.plan.bytes, |(bytes, _)| *bytes)
    }

    /// When the last message of `hosts` hosts is handed over, where there is a number of them.
    pub(super) fn last(&self, hosts: u32) -> Option<SimTime> {
        self.plan.count?;
        let of_host = |host: u32| {
            let (mut source, mut last) = (Source::default(), None);
            while let Some(at) = self.next_time(host, &mut source) {
                last = Some(at);
                source.count += 1;
                if at.0 > MAX_PS {
                    break;
                }
            }
            last
        };
        (0..hosts).filter_map(of_host).max()
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
pub(super) fn message(
    source: u32,
    destination: u32,
    bytes: u64,
    level: ServiceLevel,
    count: u64,
    flows: Flows,
) -> Message {
    let token = (u64::from(source) << 40) | (count & ((1 << 40) - 1));
    let flow = match flows {
        Flows::Pair => (u64::from(source) << 32) | u64::from(destination),
        Flows::Message => mix(token),
    };
    Message { source: HostIndex(source), destination: HostIndex(destination), bytes, level, flow, token: Token(token) }
}
