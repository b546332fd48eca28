//! How hosts draw their messages.

use std::ops::Range;
use std::{panic, thread};

use super::arrivals::Gaps;
use super::config::{Arrivals, Flows};
use super::plan::Plan;
use super::table::MAX_PS;
use super::{Destinations, Drawn, draw, unit};
use crate::cost::thread_cpu_s;
use crate::fabric::packet::{Message, ServiceLevel};
use crate::kernel::random::mix;
use crate::network::{HostIndex, Token};
use crate::time::SimTime;

/// Fewer hosts are not worth a thread of their own.
const HOSTS_OF_A_SHARE: u32 = 1_024;

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
    /// A cycle, if it is a whole number of picoseconds: dividing takes long.
    whole_cycle_ps: Option<u64>,
    levels: LevelShares,
    pub(super) destinations: Destinations,
}

impl Source {
    /// When it hands over its next message: with `bernoulli` the number of its cycle.
    #[inline]
    pub(super) const fn moment(&self) -> u64 {
        self.moment
    }
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
        Self {
            gaps: Gaps::new(plan, seed),
            whole_cycle_ps: plan.link.whole_cycle_ps(),
            levels: LevelShares::new(&plan.levels),
            plan: plan.clone(),
            seed,
            destinations,
        }
    }

    /// A cycle in picoseconds, if each message comes when one begins, and a cycle is a whole number of them.
    pub(super) fn whole_cycle_ps(&self) -> Option<u64> {
        self.whole_cycle_ps.filter(|cycle_ps| *cycle_ps > 0 && self.plan.arrivals == Arrivals::Bernoulli)
    }

    /// The same messages, measured by `plan`.
    pub(super) fn set_plan(&mut self, plan: &Plan) {
        self.plan = plan.clone();
    }

    /// When `host` hands over the message behind those of `source`; `None` if not before the run's end.
    #[inline]
    pub(super) fn next_time(&self, host: u32, source: &mut Source) -> Option<SimTime> {
        let drawn = self.drawn(host, source.count);
        self.time_of(host, source, drawn)
    }

    /// What is drawn for the time of message `count` of `host`.
    #[inline]
    pub(super) fn drawn(&self, host: u32, count: u64) -> u64 {
        self.gaps.drawn(host, count)
    }

    /// When `host` hands over the message behind those of `source`, for whose time this was `drawn`; `None` if not before the run's end.
    #[inline]
    pub(super) fn time_of(&self, host: u32, source: &mut Source, drawn: u64) -> Option<SimTime> {
        if self.destinations.is_silent(host) || self.plan.count.is_some_and(|most| source.count >= most) {
            return None;
        }
        source.moment = self.gaps.moment(host, source.count, source.moment, drawn);
        let at = match self.plan.arrivals {
            Arrivals::Bernoulli => match self.whole_cycle_ps {
                Some(cycle_ps) => source.moment.saturating_mul(cycle_ps),
                None => self.plan.link.cycle_ps(source.moment),
            },
            Arrivals::Exponential | Arrivals::Fixed => source.moment,
        };
        (at < self.plan.end_ps).then_some(SimTime(at))
    }

    /// Message `count` of `host`; `None` if it is left out.
    #[inline(always)]
    pub(super) fn message(&self, host: u32, count: u64) -> Option<Message> {
        let destination = self.destinations.destination(self.seed, host, count)?;
        let level = self.level(host, count);
        Some(message(host, destination, self.bytes(host, count), level, count, self.plan.flows))
    }

    /// How long message `count` of `host` is.
    #[inline]
    fn bytes(&self, host: u32, count: u64) -> u64 {
        if self.plan.lengths.is_empty() {
            return self.plan.bytes;
        }
        let drawn = unit(draw(self.seed, Drawn::Length, host, count));
        let found = self.plan.lengths.iter().find(|(_, upper)| drawn < *upper).or(self.plan.lengths.last());
        found.map_or(self.plan.bytes, |(bytes, _)| *bytes)
    }

    /// When the last message of `hosts` hosts is handed over, where there is a number of them, found on `threads` threads; and what others than
    /// this one computed for it, in seconds.
    pub(super) fn last(&self, hosts: u32, threads: usize) -> (Option<SimTime>, f64) {
        if self.plan.count.is_none() {
            return (None, 0.0);
        }
        let of_hosts = |hosts: Range<u32>| hosts.filter_map(|host| self.last_of(host)).max();
        let share = hosts.div_ceil(u32::try_from(threads).unwrap_or(u32::MAX).max(1)).max(HOSTS_OF_A_SHARE);
        let mut shares = (0..hosts).step_by(share as usize).map(|first| first..first.saturating_add(share).min(hosts));
        let mine = shares.next().unwrap_or_default();
        thread::scope(|scope| {
            let others: Vec<_> = shares.map(|hosts| scope.spawn(|| (of_hosts(hosts), thread_cpu_s()))).collect();
            others.into_iter().fold((of_hosts(mine), 0.0), |(last, cpu_s), other| {
                let (at, more_s) = other.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
                (last.max(at), cpu_s + more_s)
            })
        })
    }

    /// When `host` hands over its last message.
    fn last_of(&self, host: u32) -> Option<SimTime> {
        let (mut source, mut last) = (Source::default(), None);
        while let Some(at) = self.next_time(host, &mut source) {
            last = Some(at);
            source.count += 1;
            if at.0 > MAX_PS {
                break;
            }
        }
        last
    }

    #[inline]
    pub(super) fn level(&self, host: u32, count: u64) -> ServiceLevel {
        self.levels.level(self.levels.place(self.seed, host, count))
    }
}

/// Service levels, each of a share of the messages.
#[derive(Clone, Debug)]
pub(crate) struct LevelShares {
    levels: Vec<ServiceLevel>,
    /// Below which number of 53 bits a message has each of them.
    bounds: Vec<u64>,
}

impl LevelShares {
    /// Of levels with the upper ends of their shares.
    pub fn new(shares: &[(ServiceLevel, f64)]) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^53, or little more")]
        let bound = |upper: f64| (upper * NUMBERS).ceil() as u64;
        Self {
            levels: shares.iter().map(|(level, _)| *level).collect(),
            bounds: shares.iter().map(|(_, upper)| bound(*upper)).collect(),
        }
    }

    /// Which of them message `count` of `host` has; 0 without any.
    #[inline]
    pub fn place(&self, seed: u64, host: u32, count: u64) -> usize {
        if self.bounds.len() < 2 {
            return 0;
        }
        // What `unit` takes of the bits.
        let drawn = draw(seed, Drawn::Level, host, count) >> 11;
        // Which one is not to be foreseen: all are compared.
        let below = self.bounds.iter().map(|bound| usize::from(drawn >= *bound)).sum::<usize>();
        below.min(self.bounds.len() - 1)
    }

    /// The level at `place`; the default one without any.
    #[inline]
    pub fn level(&self, place: usize) -> ServiceLevel {
        self.levels.get(place).copied().unwrap_or_default()
    }
}

/// How many numbers `unit` draws.
const NUMBERS: f64 = 9_007_199_254_740_992.0;

/// A message; its token is its source x 2^40 + its number there, as the keys of packets.
#[inline]
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
